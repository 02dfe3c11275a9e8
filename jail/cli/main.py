"""The entry: the plain `run` without click, everything else through it; errors in jail's one form."""

import gc
import os

from jail.errors import EXIT_JAIL, EXIT_USAGE, JailError, report
from jail.light import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click

_KEYBOARD_INTERRUPT = 130


def main(arguments: list[str]) -> int:
    """Run one command of jail; returns its exit code and never lets a traceback of a fault of the host or the
    caller out.
    """
    _fill_standard_streams()
    try:
        return _main(arguments)
    except JailError as error:
        report(error)
        return error.code
    except ImportError as error:
        hint = "install jail anew: from a checkout `scripts/jail`, else `pip install --force-reinstall .`"
        report(JailError(f"a part of jail is missing: {error.name}", where=str(error), hint=hint))
        return EXIT_JAIL
    except KeyboardInterrupt:
        return _KEYBOARD_INTERRUPT
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        report(JailError("the system refused a call", where=f"{where}{error}", hint="run `jail doctor`"))
        return EXIT_JAIL


def _fill_standard_streams() -> None:
    """A closed stdin, stdout or stderr becomes /dev/null, so that no file of ours gets its number."""
    while (fd := os.open("/dev/null", os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)  # noqa: FBT003 - as os has it
    os.close(fd)


def _main(arguments: list[str]) -> int:
    if arguments[:1] == ["run"]:
        # What is imported stays: a collection would look at all of it in vain, and again after each fork.
        gc.disable()
        from jail.cli.plain import parse

        parsed = parse(arguments[1:])
        if parsed is not None:
            from jail.launch.start import run

            return run(*parsed)
    return _with_click(arguments)


def _with_click(arguments: list[str]) -> int:
    import click

    from jail.cli.group import group

    try:
        result = group.main(arguments, prog_name="jail", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return EXIT_USAGE
    except click.ClickException as error:
        report(_of_click(error, arguments))
        return EXIT_USAGE
    except click.Abort:
        return _KEYBOARD_INTERRUPT
    return result if isinstance(result, int) else 0


def _of_click(error: "click.ClickException", arguments: list[str]) -> JailError:
    """A fault of the command line in the form of all others: click has sentences, a capital and no place."""
    from jail.cli.table import COMMANDS

    context = getattr(error, "ctx", None)
    command = " ".join(["jail", *(name for name in arguments[:1] if name in COMMANDS)])
    command = command if context is None else context.command_path
    where = f"the command line of `{command}`"
    known = sorted(getattr(error, "possibilities", None) or ())[:SHOWN]
    parameter = getattr(error, "param", None)
    if known or (parameter is not None and error.message):
        message = error.message
    else:  # what is missing has no message but click's sentence, with choices on lines of their own
        message = error.format_message().partition(". Choose from")[0]
    if parameter is not None:
        named = parameter.param_type_name == "option"
        where += f", {parameter.opts[0] if named else parameter.human_readable_name}"
    near = f"write {' or '.join(known)}, or " if known else ""
    return JailError(
        f"{message[:1].lower()}{message[1:]}".removesuffix("."),
        where=where,
        hint=f"{near}see `{command} --help`",
        code=EXIT_USAGE,
    )


SHOWN: Final = 3
"""Names like the one that was typed that an error offers."""
