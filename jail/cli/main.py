"""The entry: the plain `run` without click, everything else through it; errors in jail's one form."""

import gc
import os
import sys

from jail.errors import EXIT_JAIL, EXIT_USAGE, JailError, printable, report

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
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "jail"
        sys.stderr.write(printable(f"jail: {error.format_message()}") + f"\njail:   to do: {where} --help\n")
        return EXIT_USAGE
    except click.Abort:
        return _KEYBOARD_INTERRUPT
    return result if isinstance(result, int) else 0
