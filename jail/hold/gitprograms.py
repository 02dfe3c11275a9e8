"""Programs that a git configuration names by a path.

Rule: a setting whose value git hands to a shell, or runs, names a program in each word that is a path, and
any word may be one that the program obeys (`python3 tools/clean.py`). Pure; whether such a file is there, and
whose, is for who asks (git-config(1), gitattributes(5)).
"""

from jail.hold.gitconfig import Setting, as_text
from jail.light import Final, Iterator

_PROGRAMS: Final = frozenset(
    "core.fsmonitor core.sshcommand core.editor core.pager core.askpass core.gitproxy sequence.editor"
    " gpg.program diff.external diff.command diff.textconv filter.clean"
    " filter.smudge filter.process merge.driver credential.helper interactive.difffilter"
    " uploadpack.packobjectshook sendemail.smtpserver sendemail.tocmd sendemail.cccmd trailer.cmd"
    " trailer.command difftool.cmd mergetool.cmd browser.cmd man.cmd alternaterefs.command"
    " core.alternaterefscommand gc.recentobjectshook".split()
)
_MAYBE: Final = ("pager", "alias")
"""Sections in which any name may have a command."""
MARKS: Final = (
    *(key.partition(".")[2].rpartition(".")[2].encode() for key in sorted(_PROGRAMS)),
    b"pager",
    b"alias",
)
"""One of them is in each configuration that names a program, in lower case."""
_SPLIT: Final = str.maketrans(dict.fromkeys("\"'`;|&()<>$={}!,\n\t", " "))
WORDS: Final = 100
"""Words of one value that are looked at."""


def paths(setting: Setting) -> Iterator[str]:
    """The words of a setting that may be paths of what git runs; nothing for one that runs nothing."""
    if setting.value is None:
        return
    section = setting.key.partition(".")[0]
    if setting.key not in _PROGRAMS and section not in _MAYBE:
        return
    if section == "alias" and not setting.value.startswith("!"):
        return  # one of git's own commands
    words = as_text(setting.value).translate(_SPLIT).split()
    for at, word in enumerate(words[:WORDS]):
        # The first word without a slash is looked for in PATH.
        if not word.startswith("-") and (at or "/" in word):
            yield word
