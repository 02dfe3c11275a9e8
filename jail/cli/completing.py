"""What a shell may offer for a word of the command line, told by the metavar of its parameter.

Rule: what help calls a value is what completion offers for it; no command registers anything, so one that is
added has its words. Only a shell that asks pays for this: `jail run` and help never import it. A word that
cannot be listed (the folder of sessions is somebody else's, a folder of PATH is closed) is not offered;
nothing is ever printed about it, since the person is in the middle of a line. Nor is one that a shell would
read as anything but one word: the shells put it into the line as it is, and who named it may be a command
that ran in the jail.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import click
from click.shell_completion import CompletionItem

from jail.errors import JailError, printable
from jail.hold import store
from jail.launch import reach
from jail.ledger import place
from jail.policy import sources

DESCRIBED: Final = 30
"""Sessions, from the newest on, that are shown with their command: for each a ledger is opened."""
RUNNING_ALONE: Final = ("exec", "stop")
"""Commands that take no session that has ended."""
RESUMED: Final = "resume"
"""The option that takes only a session that has ended and still holds something."""
_PLAIN: Final = re.compile(r"-|[A-Za-z0-9_+.@][A-Za-z0-9_+.@-]*")
"""What no shell expands, splits or takes for an option, and what ends no line of click's answer to it."""
_Offer = Callable[[click.Context, click.Parameter], Iterable[CompletionItem]]


def prepare(command: click.Command) -> None:
    """Make the parameters of `command`, and of its subcommands, offer what their metavars say."""
    for parameter in command.params:
        if parameter.type in (click.STRING, click.UNPROCESSED) and _offers(parameter):
            parameter.type = _Told()
    if isinstance(command, click.Group):
        for below in command.commands.values():
            prepare(below)


class _Told(type(click.STRING)):  # type: ignore[misc]  # click names no public class for it
    """A text whose words are told by its metavar."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        found = [item for offer in _offers(param) for item in offer(ctx, param)]
        # A word that is no prefix is the shell's own search for files or folders; it goes first, since bash
        # forgets what came before it.
        searched = [CompletionItem(incomplete, type=item.type) for item in found if item.type != "plain"]
        return searched + [
            item
            for item in found
            if item.type == "plain" and item.value.startswith(incomplete) and _PLAIN.fullmatch(item.value)
        ]


def _offers(parameter: click.Parameter) -> list[_Offer]:
    metavar = parameter.metavar or ""
    whole = _OFFERS.get(metavar)
    words = [metavar] if whole else re.findall("[A-Z]+", metavar)
    return list(dict.fromkeys(_OFFERS[word] for word in words if word in _OFFERS))


def _files(context: click.Context, parameter: click.Parameter) -> Iterable[CompletionItem]:
    return [CompletionItem("", type="file")]


def _folders(context: click.Context, parameter: click.Parameter) -> Iterable[CompletionItem]:
    return [CompletionItem("", type="dir")]


def _policies(context: click.Context, parameter: click.Parameter) -> Iterable[CompletionItem]:
    return map(CompletionItem, sources.shipped_names())


def _variables(context: click.Context, parameter: click.Parameter) -> Iterable[CompletionItem]:
    return [CompletionItem(name) for name in os.environ if name.isidentifier()]


def _sessions(context: click.Context, parameter: click.Parameter) -> Iterable[CompletionItem]:
    from jail.ledger.reader import glance
    from jail.report.words import command_text

    try:
        state = reach.state_of(os.environ)
        names = place.listing(state)
        running = [os.path.basename(folder) for folder in reach.running_sessions(state)]
    except (JailError, OSError):
        return []
    offered = running if context.info_name in RUNNING_ALONE else names
    if parameter.name == RESUMED:
        offered = [name for name in names if name not in running and _holds(state, name)]
        running = []
    found = [CompletionItem(place.LAST, help="the newest")] if names[:1] == offered[:1] != [] else []
    if running:
        found.append(CompletionItem(reach.NEWEST_RUNNING, help="the newest that runs"))
    for number, name in enumerate(offered):
        start = glance(os.path.join(state, place.SESSIONS, name))[0] if number < DESCRIBED else None
        text = None if start is None else printable(command_text(start.fields.get("command")))
        found.append(CompletionItem(name, help=text))
    return found


def _holds(state: str, name: str) -> bool:
    folder = store.folder_of(os.path.join(state, place.SESSIONS, name))
    return os.path.exists(os.path.join(folder, store.MANIFEST))


def _programs(context: click.Context, parameter: click.Parameter) -> Iterable[CompletionItem]:
    """Programs of PATH for the first word of a command, files for the others."""
    found = _files(context, parameter)
    if context.params.get(parameter.name or ""):
        return found
    names: set[str] = set()
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder.startswith("/"):
            names.update(_executables(folder))
    return [*found, *map(CompletionItem, sorted(names))]


def _executables(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if os.access(os.path.join(folder, name), os.X_OK)]
    except OSError:
        return []


_OFFERS: Final[Mapping[str, _Offer]] = {
    "FILE": _files,
    "PATH": _files,
    "FOLDER": _folders,
    "NAME": _policies,
    "NAME[=VALUE]": _variables,
    "SESSION": _sessions,
    "COMMAND": _programs,
}
"""A metavar, or a word of one, → what may stand there."""
