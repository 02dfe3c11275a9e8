"""The one table of the options of `run`, `shell`, `plan` and `policy show`: click and the plain parser are
both made from it, and a test holds them equal.
"""

from jail.light import Final, NamedTuple


class Option(NamedTuple):
    """`name` as in launch.start.Options; `metavar` "" for a flag; `commands` that have it; `many` where it
    may be given more than once.
    """

    name: str
    metavar: str
    help: str
    commands: tuple[str, ...] = ("run", "plan", "shell", "policy show")
    many: bool = False

    @property
    def flag(self) -> str:
        """As it is typed."""
        return "--" + self.name.replace("_", "-")


JSON: Final = "Print JSON instead."
"""The help of --json, whichever command has it."""
OPTIONS: Final = (
    Option(
        "policy",
        "NAME|FILE",
        "A shipped level, or a file of yours. Default: your own choice, or overnight.",
    ),
    Option("workspace", "FOLDER", "The folder that the command works on. Default: the current one."),
    Option("hold", "", "Hold the whole workspace: what is written in it stays in the session."),
    Option("write", "PATH", "Give PATH for writing too. May be repeated, as may the next four.", many=True),
    Option("hold_path", "PATH", "Give PATH for writing, and hold it: its changes await review.", many=True),
    Option("read", "PATH", "Give PATH read-only.", many=True),
    Option("hide", "PATH", "Make PATH absent inside.", many=True),
    Option("env", "NAME[=VALUE]", "Hand on an environment variable, or set it.", many=True),
    Option("timeout", "TIME", "End the command after TIME: 90s, 45m, 12h; 0 is no limit."),
    Option("gpu", "", "Give the GPUs of this host."),
    Option(
        "resume",
        "SESSION",
        "Go on from what SESSION holds; it must have ended.",
        ("run", "plan", "shell"),
    ),
    Option("status_file", "FILE", "Write how it ended to FILE, as JSON.", ("run", "shell")),
    Option("json", "", JSON, ("plan", "policy show")),
)
