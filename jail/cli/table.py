"""The table of commands: name → module; a module is loaded when its command is called."""

from typing import Final

COMMANDS: Final = {
    "run": "Run a command inside the walls.",
    "shell": "Open your shell inside the walls.",
    "exec": "Run one more command in a session that runs.",
    "plan": "Print what `run` would do.",
    "policy": "Show, judge and list policies: what a run may do.",
    "doctor": "Say what this host can give, and how to mend the rest.",
    "sessions": "List the sessions, newest first.",
    "logs": "Print what a session recorded, and what it printed.",
    "stop": "End sessions that run.",
    "changes": "List what a session holds, before it touches a real file.",
    "apply": "Apply what a session holds to the real files.",
    "discard": "Forget what a session holds.",
    "gc": "Remove what crashes left behind, and old sessions.",
    "verify": "Check that a session's ledger is whole and unchanged.",
    "completion": "Print what a shell needs to complete the words of `jail`.",
    "man": "Print the manual page.",
}
"""Name of the command and of its module in this package → its line in `jail --help`, so that help loads no
command.
"""
