"""The one table of the options of `run` and `plan`: click and the plain parser are both made from it, and a
test holds them equal.
"""

from jail.light import Final, NamedTuple


class Option(NamedTuple):
    """`name` as in launch.start.Options; `metavar` "" for a flag; `repeats`: "yes" or "no"; `commands` that
    have it.
    """

    name: str
    metavar: str
    repeats: str
    help: str
    commands: tuple[str, ...] = ("run", "plan")

    @property
    def flag(self) -> str:
        """As it is typed."""
        return "--" + self.name.replace("_", "-")

    @property
    def many(self) -> bool:
        """Whether it may be given more than once."""
        return self.repeats == "yes"


OPTIONS: Final = (
    Option(
        "policy", "NAME|FILE", "no", "A shipped policy by its name, or a file of yours. Default: overnight."
    ),
    Option("workspace", "FOLDER", "no", "The folder that the command works on. Default: the current one."),
    Option("write", "PATH", "yes", "Give PATH for writing too. May be repeated, as may the next three."),
    Option("read", "PATH", "yes", "Give PATH read-only."),
    Option("hide", "PATH", "yes", "Make PATH absent inside."),
    Option("env", "NAME[=VALUE]", "yes", "Hand on an environment variable, or set it."),
    Option("timeout", "TIME", "no", "End the command after TIME: 90s, 45m, 12h; 0 is never."),
    Option("status_file", "FILE", "no", "Write how it ended to FILE, as JSON.", ("run",)),
    Option("json", "", "no", "Print the plan as JSON.", ("plan",)),
)
