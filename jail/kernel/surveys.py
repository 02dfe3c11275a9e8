"""What is in a tree that is given for writing: what must be hidden or protected in it, and its git dirs.

Rule: one walk with one lstat a file, since it is done at each start; mounts in it are entered, since binds
are recursive.
"""

import os
import stat

from jail.kernel import files, walk
from jail.light import Final, NamedTuple, suppress

SURVEY_ENTRIES: Final = 2_000_000
"""Entries that a survey looks at: a tree past this takes tens of seconds, and the plan says that it was not
seen whole.
"""


class Found(NamedTuple):
    """What a survey saw: paths of Unix sockets, and of regular files of which a name lies outside; how many
    entries it met, and whether it met all (False past SURVEY_ENTRIES, or where a folder may not be read).
    `git_dirs`: the folders that git would take for one, by their names, and what is named `.git` without
    being a folder, and which inode each was. `cut`: it ended at SURVEY_ENTRIES.
    """

    sockets: tuple[str, ...]
    hardlinked: tuple[str, ...]
    entries: int
    complete: bool
    git_dirs: tuple[tuple[str, files.Identity], ...] = ()
    cut: bool = False


def survey(dirfd: int, limit: int = SURVEY_ENTRIES) -> Found:
    """Sockets and hard links that lead out of the tree beneath `dirfd`; mounts in it are entered, since binds
    are recursive.

    A file is `hardlinked` when it has more names (st_nlink) than the walk met. One lstat a file, none for
    links and folders.
    """
    sockets: list[str] = []
    linked: dict[tuple[int, int], tuple[int, list[tuple[walk.Folder, str]]]] = {}
    git_dirs: list[tuple[str, files.Identity]] = []
    entries = 0
    complete = True
    denied: list[str] = []
    for folder in walk.folders(dirfd, cross_mounts=True):
        denied = folder.denied
        entries += len(folder.entries)
        if entries > limit:
            complete = False
            break
        for dirent in folder.entries:
            if dirent.name == "HEAD" and folder.depth < walk.DEEPEST and _is_git_dir(folder.entries):
                git_dirs.append((folder.path, folder.identity))
            elif (
                dirent.name == ".git"
                and folder.depth < walk.DEEPEST
                and not dirent.is_dir(follow_symlinks=False)
            ):
                with suppress(OSError):
                    found = dirent.stat(follow_symlinks=False)
                    git_dirs.append((folder.join(".git"), files.Identity(found.st_dev, found.st_ino)))
            if dirent.is_dir(follow_symlinks=False) or dirent.is_symlink():
                continue
            try:
                found = dirent.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_IFMT(found.st_mode) == stat.S_IFSOCK:
                sockets.append(folder.join(dirent.name))
            elif found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
                key = (found.st_dev, found.st_ino)
                linked.setdefault(key, (found.st_nlink, []))[1].append((folder, dirent.name))
        complete = complete and folder.whole
    out = [folder.join(name) for links, seen in linked.values() if links > len(seen) for folder, name in seen]
    seen = complete and not denied
    return Found(tuple(sockets), tuple(out), entries, seen, tuple(git_dirs), entries > limit)


def _is_git_dir(entries: list[os.DirEntry[str]]) -> bool:
    """Of a folder with a HEAD (gitrepository-layout(5))."""
    names = {entry.name for entry in entries}
    return "commondir" in names or ("objects" in names and "refs" in names)
