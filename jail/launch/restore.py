"""Protected mounts that come back: what an action on the host detached is mounted again at once.

Rule: the kernel drops a mount when the name under it is removed or renamed over from another mount namespace
(`git config` on the host renames a new file over the old one). What is put in its place is taken from a copy
of the tree that was read-only already, so that no writable moment is added to the one that the host's action
opened. That window is told to the ledger, with digests of what was there before and what is there after;
nobody claims that nothing was written in it. Both digests are read when the mount is back: what was written
to the file that was replaced, when the kernel had dropped its mount and not yet its name, is in the first.
A held tree is put back as it was, from a copy of its mount; the digest after tells what it covers then.
"""

import errno
import os
import time

from jail.kernel import files, mounts, trees
from jail.launch import heldsteps, steps
from jail.launch.channel import Channel
from jail.light import Final, NamedTuple, suppress
from jail.plan.held import link_to
from jail.plan.inside import ABSENT, EMPTY_FOLDER
from jail.plan.steps import Step
from jail.policy.paths import beneath, deepest

_RESOLVE: Final = files.RESOLVE_BENEATH | files.RESOLVE_NO_SYMLINKS | files.RESOLVE_NO_MAGICLINKS

_AWAY: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""The name, or a folder on the way to it, is not there, or something else is in its place."""
_DIGESTED: Final = ("protect", "held-file")
"""Of these the ledger says what was there before and after."""
GONE_AFTER: Final = 2.0
"""Seconds until a protected name that the host took away counts as absent: a `git switch` or an editor's save
puts it back at once."""


RETRY_MS: Final = 5
SLOW_RETRY_MS: Final = 100
"""How often what the host took away is looked for, until it is back; only then does the keeper wake by time.
"""


class _Held(NamedTuple):
    """One mount inside a writable tree: its step, its path beneath the tree, and a readable fd of what it
    shows (-1: none); `spare`: of a held tree, a detached copy of its mount with all that is mounted in it
    (-1: none).
    """

    step: Step
    path: str
    readable: int
    spare: int = -1


class Guard:
    """Looks after pins, read-only and hidden paths of a build; the keeper makes it after pivot_root(2)."""

    def __init__(self, build: steps.Build, control: Channel) -> None:
        self._build = build
        self._control = control
        self.missing: dict[str, tuple[float, str]] = {}
        trees = {step.target for step in build.plan.steps if step.verb in heldsteps.TREES}
        self._held = {
            step.target: self._hold(step)
            for step in build.plan.steps
            if step.verb in ("pin", "protect", "hide", "held-file", *heldsteps.TREES)
            and step.source in build.trees
            and not _is_in_one_of(trees, step)
        }

    def _hold(self, step: Step) -> _Held:
        path = step.target[len(step.source) :].strip("/")
        spare = self._spare(step, path) if step.verb in heldsteps.TREES else -1
        return _Held(step, path, self._readable(step), spare)

    def _spare(self, step: Step, path: str) -> int:
        place = files.openat2(self._build.trees[step.source], path, os.O_PATH | os.O_NOFOLLOW, _RESOLVE)
        try:
            return mounts.clone(place, step.target)
        finally:
            os.close(place)

    def _readable(self, step: Step) -> int:
        if step.verb not in _DIGESTED:
            return -1
        # Past the mount: what a held file covers is the host's, and shows in no mount that can be written.
        tree = self._build.kept[step.source]
        path = step.target[len(step.source) :].strip("/")
        try:
            return files.openat2(tree, path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, _RESOLVE)
        except OSError:
            return -1  # a link, or a file that its owner may not read: there is nothing to digest

    def check(self, now: float) -> None:
        """Restore every mount that is gone and can be; what is absent altogether stays in `missing`, until it
        is given over to the sweep.
        """
        for target, held in list(self._held.items()):
            tree = self._build.trees[held.step.source]
            try:
                place = files.openat2(tree, held.path, os.O_PATH | os.O_NOFOLLOW, _RESOLVE)
            except OSError as error:
                if error.errno not in _AWAY:
                    raise
                self._lost(target, held, now)
                self._give_over(target, held, now)
                continue
            try:
                if mounts.is_mount_root(place, held.path):
                    if target in self.missing:  # moved away and back, its mount with it
                        self._restored(target, held, -1)
                    continue
                covered = self._restore(held, place)
            except (FileNotFoundError, NotADirectoryError):
                self._lost(target, held, now)  # taken away again between two calls
                continue
            finally:
                os.close(place)
            self._lost(target, held, now)
            self._restored(target, held, covered)

    @property
    def retry_ms(self) -> int | None:
        """Milliseconds until what is away is looked for again; None when nothing is. At first often; of what
        stays away a name that comes back tells (record.py).
        """
        if not self.missing:
            return None
        newest = max(since for since, _ in self.missing.values())
        return RETRY_MS if time.monotonic() - newest < GONE_AFTER else SLOW_RETRY_MS

    def _give_over(self, target: str, held: _Held, now: float) -> None:
        """A protected name that stays away is an absent one: what is made there is moved away from now on."""
        since, _ = self.missing[target]
        if held.step.verb not in _DIGESTED or now - since < GONE_AFTER or not self._has_parent(held):
            return
        del self.missing[target], self._held[target]
        if held.readable >= 0:
            os.close(held.readable)
        self._control.send("gone", target, held.step.source, held.step.why)

    def _has_parent(self, held: _Held) -> bool:
        parent = held.path.rpartition("/")[0]
        if not parent:
            return True
        try:
            os.close(files.openat2(self._build.trees[held.step.source], parent, os.O_PATH, _RESOLVE))
        except OSError:
            return False
        return True

    def _lost(self, target: str, held: _Held, now: float) -> None:
        # Digests wait until the mount is back: reading takes time, and the window is open meanwhile.
        if target not in self.missing:
            before = _digest(held.readable)
            self.missing[target] = (now, before)
            self._control.send("lost", target, before)

    def _restored(self, target: str, held: _Held, covered: int) -> None:
        since, before = self.missing.pop(target)
        window = time.monotonic() - since
        fresh = self._hold(held.step)
        self._held[target] = fresh
        after = _digest(covered if covered >= 0 else fresh.readable)
        self._control.send("restored", target, before, after, window)
        for fd in (held.readable, held.spare, covered):
            if fd >= 0:
                os.close(fd)

    def _restore(self, held: _Held, place: int) -> int:
        """Mount it again; a readable fd of what a held tree covers now, else -1."""
        if held.spare >= 0:
            return _put_back(held, place)
        if held.step.verb == "pin":
            steps.mount_over(place, place, steps.SAFE, held.step.target)
        elif held.step.verb == "protect":
            self._protect(held, place)
        elif held.step.verb == "held-file":
            self._hold_again(held, place)
        else:
            self._hide(held, place)
        return -1

    def _protect(self, held: _Held, place: int) -> None:
        kept = self._build.kept[held.step.source]
        source = files.openat2(kept, held.path, os.O_PATH | os.O_NOFOLLOW, _RESOLVE)
        try:
            steps.mount_over(place, source, steps.READ_ONLY, held.step.target)
        finally:
            os.close(source)

    def _hold_again(self, held: _Held, place: int) -> None:
        if files.kind(os.fstat(place).st_mode) == "folder":
            self._protect(held, place)  # no link can be mounted on it, and git takes it for no config
            return
        link = link_to(held.step.options[0])
        heldsteps.lead_away(self._build.root, place, link, held.step.target)

    def _hide(self, held: _Held, place: int) -> None:
        if files.kind(os.fstat(place).st_mode) != "folder":
            heldsteps.lead_away(self._build.root, place, ABSENT, held.step.target)
            return
        source = self._build.inside(EMPTY_FOLDER)
        steps.mount_over(place, source, steps.READ_ONLY, held.step.target)
        os.close(source)


def _is_in_one_of(held: set[str], step: Step) -> bool:
    """No action on the host reaches what is mounted in a held tree; it comes and goes with that tree."""
    above = deepest(step.target.rpartition("/")[0], held)
    return bool(above) and beneath(above, step.source)


def _put_back(held: _Held, place: int) -> int:
    covered = -1
    with suppress(PermissionError):
        covered = os.open(".", files.FOLDER, dir_fd=place)  # ENOTDIR: something else is in its place
    try:
        mounts.attach(held.spare, place, held.step.target)
    except OSError:
        if covered >= 0:
            os.close(covered)
        raise
    return covered


def _digest(fd: int) -> str:
    if fd < 0:
        return ""
    try:
        return trees.digest_tree(fd).hex
    except OSError as error:
        return f"unreadable ({error.strerror})"
