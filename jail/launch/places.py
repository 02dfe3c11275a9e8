"""Where jail's own things and the person's credentials lie on this host.

Rule: these never enter a jail: a workspace that holds or lies in one of them is refused, and where a given
tree holds one it is hidden. The credential table names places by tool; a place that does not exist costs
nothing.
"""

import os
import pwd

from jail.errors import JailError
from jail.kernel import files
from jail.ledger.place import state_folder
from jail.light import Final, Mapping, NamedTuple
from jail.plan.facts import Place
from jail.policy.sources import USER_FILE

CREDENTIALS: Final = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".oci",
    ".terraform.d",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/doctl",
    ".config/rclone",
    ".config/containers",
    ".config/sops",
    ".config/age",
    ".config/git/credentials",
    ".config/pip",
    ".config/uv",
    ".config/pnpm",
    ".config/go/env",
    ".config/mise/age.txt",
    ".config/pypoetry/auth.toml",
    ".local/share/uv/credentials",
    ".local/share/gem/credentials",
    ".condarc",
    ".rye/credentials",
    ".sbt/.credentials",
    ".ivy2/.credentials",
    ".config/anthropic",
    ".config/github-copilot",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pip",
    ".gem/credentials",
    ".bundle/config",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".nuget",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".hex",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
)
"""Beneath the home folder: keys, tokens, browsers' profiles, and histories in which people type them."""
SYSTEM_CREDENTIALS: Final = (
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/krb5.keytab",
    "/etc/pip.conf",
    "/etc/npmrc",
    "/etc/apt/auth.conf",
    "/etc/apt/auth.conf.d",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/run/secrets",
    "/run/secrets",
    "/root/.ssh",
    "/root/.aws",
)


class Own(NamedTuple):
    """jail's folders of this user: state (sessions), cache (compiled artefacts) and configuration."""

    state: str
    cache: str
    config: str

    @property
    def user_policy(self) -> str:
        """The person's own policy file."""
        return f"{self.config}/{USER_FILE}"


def home(environ: Mapping[str, str]) -> str:
    """The canonical home folder of the caller, the account's where HOME is not absolute. Raises JailError."""
    found = environ.get("HOME", "")
    if not found.startswith("/"):
        try:
            found = pwd.getpwuid(os.geteuid()).pw_dir
        except KeyError:
            hint = "set HOME to your home folder"
            raise JailError("there is no home folder", where="HOME", hint=hint) from None
    return os.path.realpath(found)


def own(environ: Mapping[str, str], home: str) -> Own:
    """The folders by the XDG base directory specification; a relative value is ignored, as it says."""

    def base(variable: str, default: str) -> str:
        value = environ.get(variable, "")
        return value if value.startswith("/") else f"{home}/{default}"

    return Own(
        state_folder(environ, home),
        base("XDG_CACHE_HOME", ".cache") + "/jail",
        base("XDG_CONFIG_HOME", ".config") + "/jail",
    )


def own_paths(folders: Own) -> tuple[str, ...]:
    """Canonical paths of everything that is jail's: its folders, its code, its environment, the checkout it
    came from.
    """
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    found = [*folders, package]
    environment = _environment_of(package)
    if environment:
        found.append(environment)
    found += _sources(os.path.dirname(package))
    checkout = os.path.dirname(package)
    if os.path.exists(f"{checkout}/pyproject.toml"):
        found.append(checkout)
    return tuple(dict.fromkeys(os.path.realpath(path) for path in found if path))


def _environment_of(package: str) -> str:
    """The virtual environment that the package lies in, "" when it is in the system's own folders (venv, PEP
    405).
    """
    folder = package
    while folder not in ("/", ""):
        folder = os.path.dirname(folder)
        if os.path.exists(f"{folder}/pyvenv.cfg"):
            return folder
    return ""


_URL_LIMIT: Final = 65536


def _sources(site: str) -> list[str]:
    """The folder that the package was built from, where pip noted one (PEP 610, direct_url.json)."""
    from jail import __version__

    try:
        with open(f"{site}/jail-{__version__}.dist-info/direct_url.json", encoding="utf-8") as file:
            text = file.read(_URL_LIMIT)
    except (OSError, UnicodeDecodeError):
        return []
    start = text.find('"file://')
    end = text.find('"', start + 1)
    if start < 0 or end < 0:
        return []
    return [_unquoted(text[start + len('"file://') : end])]


def _unquoted(path: str) -> str:
    """Percent-encoding undone (RFC 3986, 2.1); urllib is not imported for one path."""
    parts = path.encode().split(b"%")
    raw = parts[0] + b"".join(bytes.fromhex(part[:2].decode()) + part[2:] for part in parts[1:])
    return os.fsdecode(raw)


def credentials(home: str) -> tuple[str, ...]:
    """Canonical paths of the table's places that exist."""
    named = [*(f"{home}/{name}" for name in CREDENTIALS), *SYSTEM_CREDENTIALS]
    return tuple(dict.fromkeys(os.path.realpath(path) for path in named if os.path.lexists(path)))


def look(given: str, known: dict[str, str] | None = None) -> Place:
    """What is at an absolute path, each symlink resolved. `known`: folders resolved before; added to."""
    head, _, name = given.rpartition("/")
    known = {} if known is None else known
    folder = known.get(head) or known.setdefault(head, os.path.realpath(head or "/"))
    path = f"{folder.rstrip('/')}/{name}" if name else "/"
    try:
        found = os.lstat(path)
    except OSError:
        return Place(given, path, "absent", "")
    kind = files.kind(found.st_mode)
    real = path
    if kind == "symlink":
        real = os.path.realpath(path)
        try:
            found = os.lstat(real)
        except OSError:
            return Place(given, path, kind, "")
    return Place(given, path, kind, real, files.kind(found.st_mode), found.st_dev, found.st_ino, found.st_uid)
