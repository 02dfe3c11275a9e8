"""An entry of the ledger as one line of plain words.

Rule: the fields come from a file that may have been edited, so any of them may be absent or of another type;
then its value is shown as it is. A kind that has no sentence here is shown by its name and its fields:
nothing is left out because this table is old. The caller escapes what steers a terminal.
"""

import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final

from jail.plan.autoexec import REFUSED, WARNED
from jail.policy.amounts import duration_text

VALUE_WIDTH: Final = 300
"""Characters of one value: the whole is in the ledger (`--json`)."""

LINE_WIDTH: Final = 2000
"""Characters of one line, before escaping."""

_Fields = Mapping[str, Any]


def sentence(kind: str, fields: _Fields) -> str:
    """The line for an entry of `kind`, without its time."""
    try:
        told = _SENTENCES[kind](fields)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        told = _anything(kind, fields)
    return told if len(told) <= LINE_WIDTH else told[: LINE_WIDTH - 1] + "…"


def _anything(kind: str, fields: _Fields) -> str:
    return " ".join([f"{kind}:", *(f"{name}={_value(value)}" for name, value in sorted(fields.items()))])


def command_text(value: object) -> str:
    """An argv as a shell would take it; whatever else lies in that field as it is."""
    if value and isinstance(value, list) and all(isinstance(word, str) for word in value):
        return shlex.join(value)
    return str(value)


def _value(value: object) -> str:
    text = command_text(value)
    return text if len(text) <= VALUE_WIDTH else text[: VALUE_WIDTH - 1] + "…"


def _start(fields: _Fields) -> str:
    losses = ", ".join(fields["losses"])
    without = f", without {losses}" if losses else ""
    command, where = _value(fields["command"]), _value(fields["workspace"])
    resumed = f", going on from {_value(fields['resumed'])}" if fields.get("resumed") else ""
    return f"started: {command} in {where}, policy {_value(fields['policy'])}{without}{resumed}"


def _probes(fields: _Fields) -> str:
    results = fields["results"]
    broken = [f"{name} ({met})" for name, (held, met) in results.items() if not held]
    return f"{len(results)} walls tried: {'all hold' if not broken else 'open: ' + ', '.join(broken)}"


def _running(_: _Fields) -> str:
    return "the command runs"


def _swept(fields: _Fields) -> str:
    moved = fields["moved_to"]
    fate = f"moved to {moved}" if moved else f"not moved: {fields['why_not']}"
    return f"protected, and made inside: {_value(fields['path'])} ({fields['kind']}): {fate}"


def _changed(fields: _Fields) -> str:
    grave = "changed; runs by itself" if fields.get("tier") == REFUSED else "changed"
    return f"{grave}: {_value(fields['path'])}: {_value(fields['kind'])}"


def _lost(fields: _Fields) -> str:
    return f"protection lost: {_value(fields['path'])}"


def _restored(fields: _Fields) -> str:
    same = "" if fields["digest_before"] == fields["digest_after"] else ", and its content is another"
    return f"protection back after {float(fields['window_s']):.3f} s: {_value(fields['path'])}{same}"


def _limit(fields: _Fields) -> str:
    return f"limit reached: {_value(fields['which'])} {_value(fields.get('detail', ''))}".rstrip()


def _note(fields: _Fields) -> str:
    return _value(fields["text"])


def _joined(fields: _Fields) -> str:
    where = " on a terminal" if fields["terminal"] else ""
    return f"joined {fields['join']}: {_value(fields['command'])}{where}, process {fields['pid']} inside"


def _left(fields: _Fields) -> str:
    code = fields["exit"]
    how = "" if code is None else f"exit {code}, "
    return f"left {fields['join']}: {how}{_value(fields['reason'])}"


def _stopped(fields: _Fields) -> str:
    return f"told to stop, and to be killed after {duration_text(float(fields['grace_s']))}"


def held_text(fields: _Fields) -> str:
    """What a `held` entry counts: how much was delivered, how much waits, and how grave it is."""
    delivered, waiting = fields.get("delivered", 0), fields["changes"]
    warned = fields.get("delivered_warned", 0)
    said = [f"{_changes(delivered)} delivered{_aside({'warned': warned})}"] if delivered else []
    if waiting:
        tiers = fields["tiers"]
        counts = {word: tiers.get(tier) for tier, word in _GRAVER.items()}
        counts["in conflict"] = fields["conflicts"]
        said.append(f"{_changes(waiting)} {'waits' if waiting == 1 else 'wait'}{_aside(counts)}")
    return ", ".join(said) or "no changes"


_GRAVER: Final = {"never": "that cannot be applied", REFUSED: "refused", WARNED: "warned"}
"""Tiers that are counted → as they are told."""


def _changes(count: int) -> str:
    return f"{count} change" if count == 1 else f"{count} changes"


def _aside(counts: Mapping[str, int | None]) -> str:
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    return f" ({told})" if told else ""


def _held(fields: _Fields) -> str:
    letters = ", ".join(f"{letter} {count}" for letter, count in fields["letters"].items())
    return f"held: {held_text(fields)}{letters and '; '}{letters}"


def _reviewed(kind: str) -> Callable[[_Fields], str]:
    def told(fields: _Fields) -> str:
        source = f"{_value(fields['source'])} to " if fields.get("source") else ""
        reason = f": {_value(fields['reason'])}" if fields["reason"] else ""
        aside = f" ({_value(fields['tier'])}{reason})" if fields["tier"] or reason else ""
        return f"{kind}: {_value(fields['what'])} {source}{_value(fields['path'])}{aside}"

    return told


def _applying(fields: _Fields) -> str:
    return f"applying {_changes(fields['changes'])} (apply {_value(fields['apply'])})"


def _settled(fields: _Fields) -> str:
    counts = f"{_value(fields['applied'])} applied, {_value(fields['refused'])} refused"
    told = counts if fields["outcome"] == "applied" else _value(fields["outcome"])
    return f"apply {_value(fields['apply'])} is over: {told}"


def _resumed(fields: _Fields) -> str:
    return f"resumed by {_value(fields['by'])}, which has what was held"


def _end(fields: _Fields) -> str:
    seconds = f"{float(fields['duration_s']):.1f} s, {float(fields['cpu_s']):.1f} s of processor time"
    return f"ended: exit {_value(fields['exit'])}, {_value(fields['reason'])}; {seconds}"


_SENTENCES: Final[dict[str, Callable[[_Fields], str]]] = {
    "start": _start,
    "probes": _probes,
    "running": _running,
    "swept": _swept,
    "changed": _changed,
    "lost": _lost,
    "restored": _restored,
    "limit": _limit,
    "note": _note,
    "joined": _joined,
    "left": _left,
    "stopped": _stopped,
    "held": _held,
    "end": _end,
    "applied": _reviewed("applied"),
    "delivered": _reviewed("delivered"),
    "discarded": _reviewed("discarded"),
    "refused": _reviewed("refused"),
    "applying": _applying,
    "settled": _settled,
    "resumed": _resumed,
}
