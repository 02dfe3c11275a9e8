"""From options to a plan, and from a plan to an exit code: survey → plan → refuse or show losses → session →
supervise.
"""

import errno
import os

from jail.errors import EXIT_CANNOT_ISOLATE, EXIT_JAIL, JailError, say
from jail.kernel import cgroups, files
from jail.kernel.libc import KernelError
from jail.launch import between, caches, guarded, hostpath, outcome, places, survey, watchlist
from jail.launch.outcome import Outcome
from jail.launch.watchlist import Before
from jail.ledger import writers, written
from jail.ledger.place import Session, new_session, state_folder
from jail.light import TYPE_CHECKING, Final, Mapping, NamedTuple
from jail.plan.bounds import watched_instead
from jail.plan.build import build
from jail.plan.held import FILE
from jail.plan.steps import Plan
from jail.policy.load import load
from jail.policy.paths import deepest
from jail.policy.value import Policy

if TYPE_CHECKING:
    from jail.launch.resume import Resumed


class Options(NamedTuple):
    """The options of a run, as given; cli/options.py has the names, and which command takes which."""

    policy: str | None = None
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: str | None = None
    gpu: bool = False
    workspace: str = ""
    status_file: str = ""
    json: bool = False
    hold: bool = False
    hold_path: tuple[str, ...] = ()
    resume: str = ""


class Prepared(NamedTuple):
    """Everything that one run is made of, before anything was done. `guarded`: (path, why) of what a list of
    held changes has to know (jail.launch.guarded.obeyed).
    """

    policy: Policy
    plan: Plan
    own: places.Own
    identities: dict[str, files.Identity]
    watched: tuple[watchlist.Place, ...]
    resumed: "Resumed | None" = None
    before: Before = Before()
    guarded: tuple[tuple[str, str], ...] = ()


def prepare(options: Options, command: tuple[str, ...], environ: Mapping[str, str]) -> Prepared:
    """The plan of one run; asks the host, changes nothing but the cache. Raises JailError."""
    try:
        return _prepare(options, command, environ)
    except KernelError as error:
        if error.errno != errno.ENOSYS:
            raise
        raise JailError(
            "this kernel, or a sandbox around us, does not have a call that jail needs",
            where=str(error),
            hint="run `jail doctor`; inside a jail there is no second one",
            code=EXIT_CANNOT_ISOLATE,
        ) from error


def _prepare(options: Options, command: tuple[str, ...], environ: Mapping[str, str]) -> Prepared:
    if options.resume:
        return _resumed(options, command, environ)
    return _planned(options, command, environ, None)


def _resumed(options: Options, command: tuple[str, ...], environ: Mapping[str, str]) -> Prepared:
    from jail.launch import resume

    old = resume.of(options.resume, state_folder(environ, places.home(environ)), options.workspace or ".")
    prepared = _planned(resume.completed(options, old), command, environ, old)
    resume.check(prepared.plan, old)
    return prepared


def _planned(
    options: Options, command: tuple[str, ...], environ: Mapping[str, str], resumed: "Resumed | None"
) -> Prepared:
    caller = survey.caller_from(environ, options.workspace)
    own = places.own(environ, caller.home)
    policy = load(options.policy, own.cache, caller.home, user=own.user_policy, workspace=caller.workspace)
    policy = with_options(policy, options, caller)
    facts, identities = survey.survey(policy, caller, own, command[0])
    if resumed is not None:
        facts = facts._replace(held_names=resumed.names)
    plan = build(policy, facts, command)
    # In a held tree nothing has to be moved away.
    absent = [each for each in facts.absent if (each.path, each.reason) in plan.watched]
    absent = hostpath.spelt(absent, facts.searched)
    watched = watchlist.places(facts.watch_folders, absent, facts.guarded)
    before = Before(frozenset(facts.git_dirs), facts.cut, (own.state, own.cache))
    known = guarded.obeyed(facts) if plan.held else ()
    return Prepared(policy, plan, own, identities, watched, resumed, before, known)


def with_options(policy: Policy, options: Options, caller: survey.Caller) -> Policy:
    """The policy with what the options say, which is the person's last word. Raises PolicyFaults."""
    paths = options.write or options.hold or options.hold_path or options.read or options.hide
    if not (paths or options.env or options.timeout is not None or options.gpu):
        return policy
    from jail.policy.flags import with_flags  # a plain `jail run -- COMMAND` has none

    return with_flags(
        policy,
        write=options.write,
        hold=options.hold,
        hold_path=options.hold_path,
        read=options.read,
        hide=options.hide,
        env=options.env,
        timeout=options.timeout,
        gpu=options.gpu,
        home=caller.home,
        cwd=caller.folder,
        workspace=os.path.realpath(caller.workspace),
    )


def refused(prepared: Prepared) -> JailError | None:
    """The error of a plan with a loss that its policy does not accept, or None."""
    losses = [loss for loss in prepared.plan.losses if loss.name not in prepared.policy.accept]
    if not losses:
        return None
    names = ", ".join(f'"{loss.name}"' for loss in losses)
    return JailError(
        f"this host cannot give a wall: {'; '.join(f'{loss.name}: {loss.what}' for loss in losses)}",
        where=f"policy {prepared.policy.name}, accept.losses",
        hint=f"{losses[0].remedy}; or accept it in a policy file of yours: [accept] losses = [{names}]",
        code=EXIT_CANNOT_ISOLATE,
    )


def run(options: Options, command: tuple[str, ...]) -> int:
    """Run `command` inside and return jail's exit code; the story of `jail run`. Raises JailError."""
    session_id = ""
    found = Outcome(EXIT_JAIL, outcome.FAILED, 0, "jail was interrupted")
    status = _status_file(options) if options.status_file else None
    try:
        prepared = prepare(options, command, os.environ)
        problem = refused(prepared)
        if problem is not None:
            raise problem
        session = new_session(prepared.own.state)
        session_id = session.id
        written.remember(prepared.own.state, _written_trees(prepared.plan))
        trees = [thing.path for thing in prepared.plan.held if thing.kind != FILE]
        writers.note(session.folder, _written(prepared.plan), trees)
        prepared, group = _grouped(prepared, session)
        try:
            _show_losses(prepared)
            _make_cache(prepared)
            found = between.run(prepared, session, group)
        finally:
            if group:
                cgroups.give_back(group)
    except JailError as error:
        found = outcome.of_error(error)
        raise
    except OSError as error:
        found = Outcome(EXIT_JAIL, outcome.FAILED, 0, str(error))
        raise
    finally:
        if status is not None:
            status.write(found, session_id)
    return found.code


def _written_trees(plan: Plan) -> list[str]:
    """The trees in which this command may lay links: what is held has them too, once it is applied."""
    found = _written(plan)
    return found + [
        thing.path for thing in plan.held if thing.kind != FILE and not deepest(thing.path, found)
    ]


def _written(plan: Plan) -> list[str]:
    return [step.target for step in plan.steps if step.verb == "bind" and "rw" in step.options]


def _status_file(options: Options) -> outcome.StatusFile:
    state = state_folder(os.environ, places.home(os.environ))
    return outcome.StatusFile(options.status_file, options.workspace, state)


def _grouped(prepared: Prepared, session: Session) -> tuple[Prepared, str]:
    """The control group of the run, made now, and the plan; where it cannot be made, the plan without one."""
    plan = prepared.plan
    if not plan.cgroup:
        return prepared, ""
    bounds = dict(plan.limits)
    try:
        # One less than RLIMIT_NPROC, which tells nobody that it was met.
        name, processes = cgroups.PREFIX + session.id, bounds["processes"] - 1
        return prepared, cgroups.create(plan.cgroup, name, bounds["memory_bytes"], processes)
    except KernelError as error:
        prepared = prepared._replace(plan=watched_instead(plan, str(error)))
    problem = refused(prepared)
    if problem is not None:
        raise problem
    return prepared, ""


def _show_losses(prepared: Prepared) -> None:
    """One line for what this host lacks, by the names that `accept.losses` has.

    That jail watches memory itself is the everyday state of a login by ssh: a person at a terminal is told,
    what a script captures stays the command's own. The ledger has it always.
    """
    person = os.isatty(2)
    names = [loss.name for loss in prepared.plan.losses if person or loss.name != WATCHED]
    if names:
        say(f"without {', '.join(names)}, which policy {prepared.policy.name} accepts: see `jail plan`")


def _make_cache(prepared: Prepared) -> None:
    plan = prepared.plan
    # Not mapped where the workspace is: not every file system of a home folder can be (mount_setattr(2)).
    owner = (plan.uid, plan.gid) if os.geteuid() == 0 else (-1, -1)
    for step in plan.steps:
        if step.verb == "cache":
            prepared.identities[step.source] = caches.prepare(step.source, plan.workspace, owner)


WATCHED: Final = "limits-memory"
