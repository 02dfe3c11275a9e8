"""`jail doctor`: what this host can give, layer by layer, and what to do about the rest."""

import os
from collections.abc import Iterable
from typing import Final

import click

from jail.cli.show import json_option, show, show_json
from jail.launch import doctor, doctor_text


@click.command(name="doctor")
@click.option(
    "--policy",
    metavar="NAME|FILE",
    help="Judge losses by this policy. Default: as for `jail run`.",
)
@click.option("--attack", is_flag=True, help="Attack a run of the policy from inside, and say what held.")
@json_option
@click.pass_context
def command(context: click.Context, policy: str | None, *, attack: bool, as_json: bool) -> None:
    """Try every wall that `jail run` builds; say what this host gives, what it lacks and how to mend that.

    Nothing is changed: each wall is put up in a process that ends, and a session of the real run at the end
    is thrown away. Asked by root, the walls are tried as the user that a command would be here. States:

    \b
      ok       this host gives it
      info     worth knowing; no run depends on it
      LOST     a wall that is not whole; a policy may accept that, by name
      MISSING  a run is refused, whatever the policy
      untried  could not be tried before something above is mended

    With --attack a program inside a real run of the policy, in a workspace made for it, tries to get out in
    more than fifty harmless ways: reads canaries, mounts, signals, connects. Each is held, NOT HELD or not
    tried; what must not have changed is then looked at from outside.

    \b
    Exit code:
      0   `jail run` works here; with --attack, every attack that could be tried is held
      1   with --attack: one is not held
      2   the command line or the policy is wrong
      78  a run is refused: something is missing, or lost and not accepted
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    if attack:
        context.exit(_attack(policy, as_json=as_json))
    found = doctor.examine(os.environ, policy)
    if as_json:
        show_json(doctor_text.values(found))
    else:
        _print(doctor_text.lines(found))
    context.exit(found.code)


COLOURS: Final = {
    # the words of doctor_text and of attack_text
    "ok": "green",
    "LOST": "yellow",
    "MISSING": "red",
    "untried": "yellow",
    "held": "green",
    "works": "green",
    "NOT HELD": "red",
    "FAILS": "red",
    "not tried": "yellow",
}


def _print(lines: Iterable[tuple[str, str]]) -> None:
    for word, line in lines:
        show(line, word=word, colour=COLOURS.get(word, ""))


def _attack(policy: str | None, *, as_json: bool) -> int:
    from jail.launch import attack, attack_text

    found = attack.examine(os.environ, policy)
    if as_json:
        show_json(attack_text.values(found))
        return found.code
    _print(attack_text.lines(found))
    return found.code
