"""What the command finds inside that jail itself writes: identity files, resolver files, git identity,
README, environment.

Rule: nothing of the host's own files is copied; each file is made from facts, so that it holds no more than
it says.
"""

from jail.light import Final, Mapping
from jail.plan.facts import Facts
from jail.plan.held import COPY, OVERLAY
from jail.plan.steps import Plan, Step
from jail.policy.value import Policy

HOSTNAME: Final = "jail"
ABSENT: Final = "/run/jail/absent"
EMPTY_FILE: Final = "/run/jail/empty"
EMPTY_FOLDER: Final = "/run/jail/empty.d"
_NOWHERE: Final = "/proc/self/hidden-by-jail/nothing"
"""Where the link over a hidden file leads: /proc/self never has such a folder, so that nothing can be made
there either.
"""
_NAME_SERVICES: Final = ("passwd", "group", "shadow", "hosts", "services", "protocols")
_MACHINE_ID: Final = "6a61696c6a61696c6a61696c6a61696c"
"""The same for every jail, so that it tells nothing of the host."""


def environment(
    policy: Policy, facts: Facts, path: str, variables: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """The whole environment of the command: `variables` of toolchains and caches, allow-listed names, values
    of the policy, and what jail always sets.
    """
    given = dict(facts.environment)
    values = dict(variables)
    values.update((name, value) for name, value in given.items() if _passes(name, policy.pass_names))
    if "LANG" not in values and "LC_ALL" not in values:
        values["LANG"] = "C.UTF-8"
    values.update(policy.set_values)
    values.update(
        HOME=facts.home,
        USER=facts.user,
        LOGNAME=facts.user,
        SHELL=facts.shell,
        PWD=facts.folder,
        JAIL="1",
        GIT_CONFIG_SYSTEM="/etc/gitconfig",
    )
    values["PATH"] = dict(policy.set_values).get("PATH", path)
    return tuple(sorted(values.items()))


def _passes(name: str, patterns: tuple[str, ...]) -> bool:
    return any(
        name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1])) for pattern in patterns
    )


def files(facts: Facts, plan: Plan) -> list[Step]:
    """The files that jail writes, as steps."""
    uid, gid, user = facts.uid, facts.gid, facts.user
    texts = {
        "/etc/passwd": (
            "root:x:0:0:root:/root:/usr/sbin/nologin\n"
            f"{user}:x:{uid}:{gid}:{user}:{facts.home}:{facts.shell}\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        ),
        "/etc/group": f"root:x:0:\ntty:x:5:\n{user}:x:{gid}:\nnogroup:x:65534:\n",
        "/etc/hosts": f"127.0.0.1 localhost\n127.0.1.1 {HOSTNAME}\n::1 localhost ip6-localhost\n",
        "/etc/hostname": f"{HOSTNAME}\n",
        "/etc/resolv.conf": "# There is no way out to the network.\n",
        "/etc/nsswitch.conf": "".join(f"{name}: files\n" for name in _NAME_SERVICES),
        "/etc/machine-id": f"{_MACHINE_ID}\n",
        "/etc/gitconfig": _gitconfig(facts),
    }
    steps = [Step("file", path, text, (), "made by jail") for path, text in texts.items()]
    steps += [
        Step("link", "/etc/mtab", "/proc/self/mounts", (), "made by jail"),
        Step("link", "/var/run", "/run", (), "made by jail"),
        Step("tmpfs", "/run/jail", "", ("size=1048576", "mode=0755"), "what jail tells the command"),
        Step("file", "/run/jail/README", _readme(plan), (), "made by jail"),
        Step("link", ABSENT, _NOWHERE, (), "mounted over what is hidden"),
        Step("file", EMPTY_FILE, "", (), "mounted over what is masked"),
        Step("folder", EMPTY_FOLDER, why="mounted over what is masked"),
    ]
    return steps


def identity_note(facts: Facts) -> str:
    """Who commits."""
    name, email = facts.identity
    return f"git: commits are by {name} <{email}>, unsigned, as keys stay outside"


def _gitconfig(facts: Facts) -> str:
    name, email = facts.identity
    lines = [
        "# Made by jail: the identity of the person who started it; signing is off, as keys stay outside.",
        "[user]",
        f"\tname = {_quoted(name)}",
        f"\temail = {_quoted(email)}",
        "[init]",
        f"\tdefaultBranch = {_quoted(facts.branch or 'main')}",
        "[commit]",
        "\tgpgSign = false",
        "[tag]",
        "\tgpgSign = false",
        "[safe]",
        f"\tdirectory = {_quoted(facts.workspace.real)}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A value of a git configuration file (git-config(1), Syntax); control characters are dropped."""
    kept = "".join(char for char in text if char.isprintable())
    return '"' + kept.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _held(plan: Plan) -> str:
    held = "".join(f"  {thing.path}\n" for thing in plan.held if thing.kind in (OVERLAY, COPY))
    if not held:
        return ""
    return (
        f"Held, so that what you write there stays here until a person applies it:\n{held}"
        "There, to rename a folder that was there before you meets EXDEV: copy it, and remove the old one.\n"
    )


def _readme(plan: Plan) -> str:
    writable = "".join(f"  {path}\n" for path in plan.writable)
    return (
        "You run inside `jail`: walls that the Linux kernel keeps. They cannot be opened from here;\n"
        "do not retry what they refuse.\n\n"
        f"Writable:\n{writable}"
        f"{_held(plan)}"
        "Everything else is read-only (EROFS) or absent (ENOENT). In the workspace these are read-only\n"
        "too, or are moved away as soon as they are made: RESEARCH.md, agent settings and memory, editor\n"
        "tasks, git hooks.\n\n"
        "git config of the workspace is a copy that the session keeps: write it as you need (`git branch\n"
        "-m`, `git remote add`, `git push -u`, `git submodule add`). Of it only the settings of branches,\n"
        "remotes and submodules may reach the person, who is asked; never one that runs a program\n"
        "(core.fsmonitor, core.sshCommand, alias.*, filter.*, include.*, credential.*).\n\n"
        "git and a tracked RESEARCH.md: `git switch` to a branch with another one says `unable to unlink`\n"
        "(Device or resource busy) and switches everything else; `git switch -f BRANCH` leads back. merge,\n"
        "rebase and stash that would change it stop: `git merge --abort`, else `git reset --hard`, `git\n"
        "clean`. In a worktree elsewhere (`git worktree add --detach ~/x`) all works. Say so in your\n"
        "report.\n\n"
        "Network: loopback only; nothing leaves. setuid and setgid bits are refused.\n"
        "Credentials, the home folder and other projects of the person are not here.\n"
    )
