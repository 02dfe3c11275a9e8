"""What the command line adds to a policy: `--write`, `--hold`, `--hold-path`, `--read`, `--hide`, `--env`,
`--timeout`, `--gpu`.

Rule: the same checks as for a file, all faults at once, each with its flag; no slow import. The command line
is the person's own word: it may repeat what the policy says, and replace what that says of the environment
and the time. A path that contradicts the policy is refused, as nobody can tell which of the two was meant.
"""

import os

from jail.light import Final, Mapping, Sequence
from jail.policy import amounts, limits
from jail.policy.check import (
    VERBS,
    WORKSPACE,
    Entry,
    Fault,
    PolicyFaults,
    clean,
    clean_home,
    contradictions,
    path_complaint,
    resolved,
)
from jail.policy.names import pass_complaint, set_complaint
from jail.policy.paths import beneath
from jail.policy.value import Policy

COMMAND_LINE: Final = "the command line"
CHANGES: Final = {
    **{verb: (verb,) for verb in ("write", "hold", "read", "hide")},
    "hold_path": ("hold",),
    "env": ("pass_names", "set_values"),
    "timeout": ("timeout",),
    "gpu": ("gpu",),
}
"""Option → the fields of Policy that it changes."""
_FLAGS: Final = {"write": "--write", "hold": "--hold-path", "read": "--read", "hide": "--hide"}
"""List of paths → the flag that adds to it."""


def with_flags(  # noqa: PLR0913 - one argument for each flag
    policy: Policy,
    *,
    write: Sequence[str] = (),
    hold: bool = False,
    hold_path: Sequence[str] = (),
    read: Sequence[str] = (),
    hide: Sequence[str] = (),
    env: Sequence[str] = (),
    timeout: str | None = None,
    gpu: bool = False,
    home: str,
    cwd: str,
    workspace: str = "",
) -> Policy:
    """`policy` with the flags of the command line; PolicyFaults with every fault of them.

    Paths are relative to `cwd` (absolute, as getcwd(3) gives it) and stored absolute; `~/…` is in `home`;
    what the policy says of its workspace lies in `workspace`, where that is known; `hold` is all of that. An
    entry of `env` is `NAME` (passed) or `NAME=VALUE` (set); `timeout` is text such as "90s", or "0" for none.
    """
    home = clean_home(home)
    faults: list[Fault] = []
    known = _known(policy, home, workspace)
    paths = {"write": write, "hold": hold_path, "read": read, "hide": hide}
    whole = (clean(workspace) if workspace else WORKSPACE) if hold else ""
    added = _paths(known, paths, whole, home, cwd, faults)
    pass_names, set_values = _environment(policy, env, faults)
    seconds = policy.timeout if timeout is None else _seconds(timeout, faults)
    if faults:
        raise PolicyFaults(COMMAND_LINE, faults)
    said = [(verb, path) for verb, paths in added.items() for path in paths]
    return policy._replace(
        allowed=(*policy.allowed, *said) if policy.allowed else (),
        write=(*policy.write, *added["write"]),
        hold=(*policy.hold, *added["hold"]),
        read=(*policy.read, *added["read"]),
        hide=(*policy.hide, *added["hide"]),
        pass_names=pass_names,
        set_values=set_values,
        timeout=seconds,
        gpu=policy.gpu or gpu,
    )


def _known(policy: Policy, home: str, workspace: str) -> list[Entry]:
    """The policy's own paths, those in the workspace absolute where it is known."""
    found = []
    for verb in VERBS:
        for text in getattr(policy, verb):
            path = resolved(text, home)
            if workspace and beneath(path, WORKSPACE):
                path = clean(f"{workspace}/{path}")
            found.append(Entry(verb, f"`{verb}` of the policy `{policy.name}`", path))
    return found


def _paths(
    known: list[Entry],
    given: Mapping[str, Sequence[str]],
    whole: str,
    home: str,
    cwd: str,
    faults: list[Fault],
) -> dict[str, list[str]]:
    """The flags' paths by verb, made absolute, without those that are given already; `whole` is the
    workspace where all of it is to be held, "" where not.
    """
    have = {(entry.verb, entry.path) for entry in known}
    added: dict[str, list[str]] = {verb: [] for verb in given}
    new: list[Entry] = []
    if whole and ("hold", whole) not in have:
        have.add(("hold", whole))
        added["hold"].append(WORKSPACE)
        new.append(Entry("hold", "--hold", whole))
    for verb, texts in given.items():
        for text in texts:
            path, label = _absolute(text, home, cwd), f"{_FLAGS[verb]} {text}"
            # The text is checked first: joined to the folder, an empty path would be the folder itself.
            if complaint := _text_complaint(text, verb, home) or path_complaint(path, verb, home):
                faults.append(Fault(COMMAND_LINE, label, *complaint))
            elif (verb, path) not in have and not (verb == "read" and ("system", path) in have):
                have.add((verb, path))
                added[verb].append(path)
                new.append(Entry(verb, label, path))
    faults += [
        Fault(COMMAND_LINE, found.entry.label, found.message, found.hint)
        for found in contradictions([*known, *new])
    ]
    return added


def _text_complaint(text: str, verb: str, home: str) -> tuple[str, str] | None:
    """Faults of the text as typed; `.` is fine here, as it is the current folder and is judged as such."""
    if text and clean(text) == "." and ".." not in text.split("/"):
        return None
    return path_complaint(text, verb, home)


def _absolute(text: str, home: str, cwd: str) -> str:
    path = resolved(text, home) if text else "."
    return path if path.startswith("/") else clean(os.path.join(cwd, path))


def _environment(
    policy: Policy, env: Sequence[str], faults: list[Fault]
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The policy's names and values with those of `--env`, which replace what it says of the same name."""
    passed: list[str] = []
    values: dict[str, str] = {}
    for text in env:
        name, equals, value = text.partition("=")
        # Neither the key nor the message repeats the value: it may be a secret, and messages are kept.
        complaint = set_complaint(name, value) if equals else pass_complaint(name)
        if complaint is None and (name in passed if equals else name in values):
            complaint = f"`{name}` is both passed on and set", "decide for one of the two"
        if complaint:
            faults.append(Fault(COMMAND_LINE, f"--env {name}", *complaint))
        elif equals:
            values[name] = value
        elif name not in passed:
            passed.append(name)
    kept = [name for name in policy.pass_names if name not in values and name not in passed]
    merged = {name: value for name, value in policy.set_values if name not in passed} | values
    return (*kept, *passed), tuple(sorted(merged.items()))


def _seconds(text: str, faults: list[Fault]) -> float:
    try:
        return limits.duration("timeout", text)
    except amounts.UnfitError as unfit:
        faults.append(Fault(COMMAND_LINE, f"--timeout {text}", unfit.message, unfit.hint))
        return 0.0
