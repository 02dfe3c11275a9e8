"""`jail policy`: the levels, the policy of a run with the origin of each value, and a judge for files.

Rule: nothing is kept and nothing runs; what is printed is made by the same functions as the policy of a run.
"""

import json
import os
from typing import Any

import click

from jail.cli.build import options_of
from jail.cli.show import json_option, show, show_json
from jail.launch import places, survey
from jail.launch.start import Options, with_options
from jail.policy import sources
from jail.policy.check import PolicyFaults
from jail.policy.compose import compose
from jail.policy.schema import schema as json_schema
from jail.policy.sources import Given
from jail.policy.value import Policy

_ORDER = """
    \b
    A policy is made in this order; each may change what comes before it:
      1  a shipped level: --policy NAME, else `base` of your file, else overnight
      2  your file, $XDG_CONFIG_HOME/jail/policy.toml (~/.config): may change anything
      3  the project's file, .jail.toml at the root of the workspace: only takes away
      4  the options of the command line, your last word
    --policy FILE stands in the place of 1 and 2: FILE alone, or on the level that its `base` names.

    \b
    In your file, or a FILE with a `base`:
      a list adds to what comes before; [without] takes away; any other value replaces
      on one path the later of write, hold, read and hide counts
    In a project's file:
      use, pass, write, allow           all that is left of what you allow
      deliver, losses                   the same
      hold, read, hide                  held, read-only, or absent, from now on
      limits                            lower; gpu: false
      whatever asks for more refuses the run, key by key
"""


@click.group(name="policy", help=f"Show, judge and list policies: what a run may do.\n{_ORDER}")
def command() -> None:
    """The group; its help is the order of the files."""


@command.command(name="show")
@options_of("policy show")
def show_command(**values: Any) -> None:
    """Print the policy of a run here, each value with its origin."""
    from jail.policy import text

    options = Options(**values)
    caller = survey.caller_from(os.environ, options.workspace)
    made = compose(_given(options.policy, caller))
    policy = with_options(made.policy, options, caller)
    if options.json:
        show_json(text.values(made, policy))
        return
    for line in text.lines(made, policy):
        show(line)


@command.command(name="check")
@click.argument("file", metavar="FILE")
@click.option("--user", "as_user", is_flag=True, help="FILE is one's own policy.toml, wherever it lies.")
@click.option("--project", "as_project", is_flag=True, help="FILE is a project's file, wherever it lies.")
@click.option("--policy", metavar="NAME|FILE", help="Judge a project's file against this.")
@json_option
@click.pass_context
def check(
    context: click.Context, file: str, policy: str | None, *, as_user: bool, as_project: bool, as_json: bool
) -> None:
    """Say what is wrong with FILE, all of it.

    A file named .jail.toml is judged as a project's, against the policy that you have; your own policy.toml
    as such; any other as a policy that --policy names.

    \b
    Exit code:
      0  it can be used
      2  it cannot; every fault is on standard error, or in the JSON
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines is the character itself
    if as_user and as_project:
        raise click.UsageError("--user and --project exclude each other")
    caller = survey.caller_from(os.environ, "")
    own = places.own(os.environ, caller.home).user_policy
    folder, name = os.path.split(os.path.abspath(file))
    is_project = as_project or (not as_user and name == sources.PROJECT_FILE)
    if policy is not None and not is_project:
        raise click.UsageError("--policy is for a project's file, which is judged against it")
    text = sources.read(os.path.join(folder, name))
    if is_project:
        # Read as a run would read it where it has the name; else as a file that may become one.
        beside = folder if name == sources.PROJECT_FILE else ""
        given = sources.gather(policy, caller.home, own, beside)
        given = given._replace(project=given.project or text, workspace=os.path.realpath(folder))
    elif as_user or os.path.realpath(file) == os.path.realpath(own):
        given = Given("", None, text, None, caller.home, "")
    else:
        given = Given("", text, None, None, caller.home, "")
    try:
        made = compose(given)
    except PolicyFaults as error:
        if not as_json:
            raise
        show_json({"file": file, "level": None, "faults": [fault._asdict() for fault in error.faults]})
        context.exit(error.code)
    if as_json:
        show_json({"file": file, "level": made.level or None, "faults": []})
        return
    show(f"{file}: can be used" + (f", on the level {made.level}" if made.level else ""))


@command.command(name="list")
@json_option
def list_command(*, as_json: bool) -> None:
    """List the shipped levels and parts; `*` is the default.

    The default is the level of a run without --policy: `base` of your own file, else overnight.
    """
    caller = survey.caller_from(os.environ, "")
    own = places.own(os.environ, caller.home).user_policy
    default = compose(sources.gather(None, caller.home, own)).level
    levels = [(name, _level(name, caller.home).description) for name in sources.shipped_names()]
    parts = sources.shipped_names("parts")
    if as_json:
        found = [{"name": name, "description": said, "default": name == default} for name, said in levels]
        show_json({"levels": found, "parts": list(parts)})
        return
    for name, said in levels:
        show(f"{'*' if name == default else ' '} {name:12}  {said}")
    show("")
    show(f"parts: {', '.join(parts)}")


def _level(name: str, home: str) -> Policy:
    return compose(Given(name, None, None, None, home, "")).policy


@command.command(name="schema")
def schema_command() -> None:
    """Print the JSON Schema of policy files, for editors."""
    click.echo(json.dumps(json_schema(sources.shipped_names(), sources.shipped_names("parts")), indent=2))


def _given(chosen: str | None, caller: survey.Caller) -> Given:
    own = places.own(os.environ, caller.home).user_policy
    return sources.gather(chosen, caller.home, own, caller.workspace)
