"""The caches of package managers and compilers: the workspace's own, kept from run to run.

Rule: never the person's own, which a command inside could poison for the host; what one run
leaves in them is run by later ones inside the same walls, and by nothing outside. They are given where the
policy uses toolchains. Most programs follow XDG_CACHE_HOME (XDG base directory specification) or ~/.cache;
the table names what the others take.
"""

from jail.light import Collection, Final, Iterable
from jail.plan.facts import Facts
from jail.plan.steps import Step
from jail.plan.trees import Trees
from jail.policy.paths import beneath

INSIDE: Final = "/run/jail/cache"
"""Where it is inside: in the one folder that no policy can give otherwise."""

VARIABLES: Final[dict[str, dict[str, str]]] = {
    "python": {"CONDA_PKGS_DIRS": "conda", "UV_LINK_MODE": "=copy"},
    "node": {
        "npm_config_cache": "npm",
        "pnpm_config_store_dir": "pnpm",
        "YARN_GLOBAL_FOLDER": "yarn-berry",
        "BUN_INSTALL_CACHE_DIR": "bun",
    },
    "rust": {"CARGO_HOME": "cargo"},
    "go": {"GOPATH": "go"},
    "java": {
        "MAVEN_OPTS": f"=-Dmaven.repo.local={INSIDE}/maven",
        "MAVEN_USER_HOME": "m2",
        "GRADLE_USER_HOME": "gradle",
    },
    "ruby": {"BUNDLE_USER_HOME": "bundle", "GEM_SPEC_CACHE": "gem-specs"},
    "cc": {"CCACHE_DIR": "ccache"},
}
"""Part → variable → folder in the cache, or `=` and the value itself. pip, uv, poetry, yarn 1, corepack, go
build, sccache and many more need none: XDG_CACHE_HOME moves theirs. CARGO_HOME and GOPATH also take what
`cargo install` and `go install` make, as the person's are read-only. uv copies: a hard link cannot lead out
of a mount.
"""

SETTINGS: Final = {"node": (".config/pnpm/rc", f"store-dir={INSIDE}/pnpm\n")}
"""Part → a file of the home folder that says the same where a variable cannot: pnpm before version 11 knows
npm's variables alone, and npm complains of any that it does not know itself.
"""


def environment(parts: Iterable[str], cache: str) -> dict[str, str]:
    """The variables of the parts in use; none without a cache."""
    if not cache:
        return {}
    found = {"XDG_CACHE_HOME": INSIDE}
    for part in parts:
        for name, value in VARIABLES[part].items():
            found[name] = value[1:] if value.startswith("=") else f"{INSIDE}/{value}"
    return found


def steps(trees: Trees, facts: Facts, parts: Iterable[str]) -> list[Step]:
    """The mount of the cache, and ~/.cache as a link to it where nothing that is given lies there."""
    if not facts.cache:
        return []
    usual = f"{facts.home}/.cache"
    inner = [*trees.read_only, *trees.writable, *(link.target for link in trees.links)]
    found = [
        Step("cache", INSIDE, facts.cache, ("rw",), "kept for later runs here; nothing of the person's own")
    ]
    if not any(beneath(path, usual) for path in inner):
        found.append(Step("link", usual, INSIDE, (), "for programs that know no variable"))
    settings = [SETTINGS[part] for part in parts if part in SETTINGS]
    found += [
        Step("file", f"{facts.home}/{name}", text, (), "where its cache is")
        for name, text in settings
        if not trees.holds(f"{facts.home}/{name}")
    ]
    return found


def notes(facts: Facts, parts: Collection[str]) -> list[str]:
    """What a person should know of the caches."""
    if not parts:
        return []
    if not facts.cache:
        return ["caches are not kept: jail's cache folder is not this user's alone, or cannot be made"]
    use = "later runs here use them, as do runs at the same time; nothing on the host does"
    return [f"caches are kept in {facts.cache}, for this workspace alone: {use}"]
