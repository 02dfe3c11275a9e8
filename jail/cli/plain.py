"""The command line of `jail run` without click, which alone costs four bare interpreters.

Rule: made from the same table as the click command; what it does not understand, `--help` and errors among
it, it hands over to click by returning None, so that there is one text for each. Everything after `--`, or
from the first word that is no option, is the command's and is never looked at.
"""

from jail.cli.options import OPTIONS
from jail.launch.start import Options


def parse(arguments: list[str], command: str = "run") -> tuple[Options, tuple[str, ...]] | None:
    """The options and the command of `jail run ARGUMENTS`, or None when click has to answer."""
    table = {option.flag: option for option in OPTIONS if command in option.commands}
    values: dict[str, object] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        flag, equals, value = rest.pop(0).partition("=")
        option = table.get(flag)
        if option is None:
            return None
        if not option.metavar:
            if equals:
                return None
            values[option.name] = True
            continue
        if not equals:
            if not rest:
                return None
            value = rest.pop(0)
        if option.many:
            values[option.name] = (*tuple(values.get(option.name, ())), value)  # type: ignore[arg-type]  # always a tuple here
        else:
            values[option.name] = value
    if rest and rest[0] == "--":
        rest.pop(0)
    if not rest:
        return None
    return Options(**values), tuple(rest)  # type: ignore[arg-type]  # the names are the table's
