"""What may not stay of the git dirs in a written tree, and of what leads git, when a run has ended.

Rule: what a run changed is judged, and all of a git dir that was none when the run began, however old its
parts are: one run can lay the config, and the next the HEAD that makes git obey it. Git's own files are no
links and no pipes: git writes through the one (COMMIT_EDITMSG, logs) and waits for ever at the other; but for
the link that HEAD was in old repositories (gitrepository-layout(5)). What leads git elsewhere is judged by
jail.hold.gitpointers.
"""

import os

from jail.hold import freshgit
from jail.kernel import files, walk
from jail.launch.watchlist import LINK, PIPE, Before, is_head
from jail.light import Final, Iterator, NamedTuple
from jail.policy.paths import deepest

HANDFUL: Final = 8
"""Hooks of a git dir made inside that are taken one by one; more are taken with their folder."""

_FOLDERS: Final = frozenset(
    "branches info lfs logs modules objects rebase-apply rebase-merge refs reftable remotes rr-cache"
    " sequencer svn worktrees".split()
)
"""Folders of a git dir whose content is git's own; a bare repository may have its worktrees among them."""


class Offence(NamedTuple):
    """`name` is relative to the folder that was asked for; `kind` as in jail.kernel.files."""

    name: str
    kind: str
    reason: str


class Ground(NamedTuple):
    """What one look at a tree goes by. `place`: the path of the tree, and the trees that git may be led to
    from it, None where it may be led nowhere; `before`: None where nothing is known of it.
    """

    since_ns: int
    place: freshgit.Place | None = None
    before: Before | None = None

    def since(self, folder: walk.Folder) -> int:
        """From which change time on the parts of a git dir count; 0 is all of them."""
        if self.before is None or self.place is None:
            return self.since_ns
        if folder.depth >= walk.DEEPEST:
            return 0
        path = f"{self.place.path}/{folder.path}".rstrip("/")
        if (path, folder.identity) in self.before.git_dirs:
            return self.since_ns
        if not self._is_cut():
            return 0
        made = any(_changed(folder.fd, name) >= self.since_ns for name in (".", "HEAD", "commondir"))
        return 0 if made else self.since_ns

    def of_git_dir(self, folder: walk.Folder, since_ns: int) -> Iterator[Offence]:
        """Parts of a git dir, whatever its name, that would make git run something."""
        where = self._at(folder)
        hooks_moved = _changed(folder.fd, "hooks") >= self.since_ns
        found: list[Offence] = []
        for path, reason in freshgit.offences(folder.fd, where):
            try:
                part = os.stat(path or ".", dir_fd=folder.fd, follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError:
                found.append(Offence(path, "special", reason))
                continue
            if part.st_ctime_ns >= since_ns or (hooks_moved and path.startswith("hooks/")):
                found.append(Offence(path, files.kind(part.st_mode), reason))
        hooks = [each for each in found if each.name.startswith("hooks/")]
        if not since_ns and len(hooks) > HANDFUL:
            found = [each for each in found if each not in hooks]
            found.append(Offence("hooks", "folder", hooks[0].reason))
        yield from found

    def of_entry(
        self, folder: walk.Folder, entry: "os.DirEntry[str]", folded: str, scratch: int
    ) -> Offence | None:
        """One name that is no folder. `folded`: its canonical form; `scratch`: as `since`, where the folder
        is git's own, else -1.
        """
        if entry.is_file(follow_symlinks=False):
            return self._of_marker(folder, entry, "file") if folded == ".git" else None
        kind = walk.kind_of(entry)
        reason = ""
        if scratch >= 0 and _is_new(entry, scratch):
            link = kind == "symlink" and not is_head(folder.fd, entry.name)
            reason = LINK if link else PIPE if kind == "special" else ""
        if reason:
            return Offence(entry.name, kind, reason)
        if folded == ".git":
            return self._of_marker(folder, entry, kind)
        if kind == "special":
            waits = folded.startswith(".git") and _is_new(entry, self.since_ns)
            return Offence(entry.name, kind, PIPE) if waits else None
        return self._of_link(folder, entry, kind)

    def scratch(self, folder: walk.Folder, above: int, *, of_git_dir: bool) -> int:
        """From which change time on links in a folder of a git dir count, -1 where that is not git's own.
        `above`: the same of the folder above, which is a git dir itself (`of_git_dir`).
        """
        if above < 0 or (of_git_dir and folder.name not in _FOLDERS):
            return -1
        # What was moved here as a part of a folder keeps its own change time.
        return 0 if _changed(folder.fd, ".") >= self.since_ns else above

    def _is_cut(self) -> bool:
        """Whether git dirs may have been here at launch that nobody knows of."""
        return (
            self.before is not None
            and self.place is not None
            and bool(deepest(self.place.path, self.before.cut))
        )

    def _at(self, folder: walk.Folder) -> freshgit.Place | None:
        if self.place is None or folder.depth >= walk.DEEPEST:
            return None  # it may lead nowhere
        return self.place._replace(path=f"{self.place.path}/{folder.path}".rstrip("/"))

    def _of_marker(self, folder: walk.Folder, entry: "os.DirEntry[str]", kind: str) -> Offence | None:
        if self.place is None:
            return None
        where = self._at(folder) or self.place._replace(trees=())
        if _is_new(entry, self.since_ns) or not self._was_there(where, entry):
            from jail.hold import gitpointers  # most runs make no such file

            reason = gitpointers.offence(where, folder.fd, entry.name, kind)
            return Offence(entry.name, kind, reason) if reason else None
        # It is the person's, but a link on its way may be new.
        return self._of_link(folder, entry, kind)

    def _was_there(self, where: freshgit.Place, entry: "os.DirEntry[str]") -> bool:
        """Whether it was at this very path at launch: what was moved may lead elsewhere now."""
        if self.before is None or self._is_cut():
            return True
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            return False
        return (f"{where.path}/{entry.name}", (found.st_dev, found.st_ino)) in self.before.git_dirs

    def _of_link(self, folder: walk.Folder, entry: "os.DirEntry[str]", kind: str) -> Offence | None:
        """Of any age: where it leads may have changed without it."""
        if self.before is None or self.place is None or kind not in ("symlink", "file"):
            return None

        from jail.hold import gitpointers  # there are workspaces without any link

        def path() -> str:
            where = self._at(folder)
            return where.path if where is not None else ""

        if not gitpointers.leads_into(folder.fd, path, entry.name, kind, self.before.own):
            return None
        return Offence(entry.name, kind, gitpointers.KEPT)


def _is_new(entry: "os.DirEntry[str]", since_ns: int) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_ctime_ns >= since_ns
    except OSError:
        return False


def _changed(folder: int, name: str) -> int:
    """The change time of a name in an open folder, 0 where there is none."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime_ns
    except OSError:
        return 0
