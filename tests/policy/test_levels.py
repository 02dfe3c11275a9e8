"""The shipped levels: what each gives, that none gives a secret, and that each line says why."""

import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from jail.policy.load import load
from jail.policy.paths import beneath
from jail.policy.sources import shipped_folder
from jail.policy.value import GIT_CONFIG, LOSSES, TOOLCHAINS, Policy
from support.composed import LEVELS, PARTS, SHIPPED, made
from support.installed import CHECKOUT

CREDENTIALS = """
/etc/shadow /etc/gshadow /etc/sudoers /etc/sudoers.d /etc/security/opasswd /etc/krb5.keytab /etc/krb5.conf
/etc/ssh/ssh_host_ed25519_key /etc/ssl/private/server.key /etc/pki/tls/private/server.key /etc/pki/nssdb
/etc/letsencrypt /etc/wireguard /etc/openvpn /etc/ipsec.secrets /etc/ppp/chap-secrets /etc/NetworkManager
/etc/wpa_supplicant /etc/pip.conf /etc/npmrc /etc/gitconfig /etc/environment /etc/environment.d
/etc/profile.d/proxy.sh /etc/apt/auth.conf /etc/apt/apt.conf.d/proxy /etc/yum.repos.d /etc/dnf/dnf.conf
/etc/zypp /etc/wgetrc /etc/curlrc /etc/netrc /etc/maven/settings.xml /etc/docker /etc/containers/auth.json
/etc/rancher /etc/kubernetes /etc/mysql/debian.cnf /etc/postgresql /etc/postgresql-common /etc/odbc.ini
/etc/ldap /etc/ldap.secret /etc/nslcd.conf /etc/sssd /etc/samba /etc/fstab /etc/cifs /etc/exports /etc/cron.d
/etc/crontab /etc/machine-id /etc/hostname /etc/nix/nix.conf /etc/R/Renviron.site /etc/php /etc/systemd
/etc/default/grub /etc/subuid /etc/polkit-1 /etc/cloud /etc/xdg /etc/opt /etc/skel
/root/.ssh /home/ada/.ssh /var/lib/jenkins /var/spool/cron /var/mail /var/log /var/run/docker.sock /var/www
/run/docker.sock /run/secrets /run/user/1000 /run/credentials /srv /mnt /media /boot /tmp/x /var/tmp/x
/proc/1/environ /dev/mem /sys/firmware /sys/kernel /sys/fs/cgroup /sys/class/dmi
""".split()
"""Files that hold or may hold a secret, or tell of the host, and that no program needs to start."""

NEEDED = """
/usr/bin/env /bin/sh /lib64/ld-linux-x86-64.so.2 /usr/include/stdio.h /opt/vendor/bin/cc /etc/alternatives/cc
/etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/java/cacerts /etc/ssl/openssl.cnf
/etc/pki/tls/certs/ca-bundle.crt /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
/etc/crypto-policies/back-ends/opensslcnf.config
/etc/ld.so.cache /etc/localtime /etc/os-release /etc/mime.types /etc/services /etc/protocols
/etc/fonts/fonts.conf /etc/java-17-openjdk/security/java.security /etc/maven/m2.conf
/etc/python3.11/sitecustomize.py
/etc/perl/Net/libnet.cfg /etc/terminfo /etc/gdb/gdbinit /nix/store/x /gnu/store/x /run/current-system
/sys/devices/system/cpu/online /etc/login.defs /etc/bash.bashrc
""".split()
"""What compilers, runtimes and build tools read, on one host or another."""


POLICIES = {name: load(name, None, "/home/ada") for name in LEVELS}
LISTS = ("system", "write", "hold", "read", "toolchains", "terminal", "deliver", "accept")
LIMITS = ("memory_bytes", "processes", "open_files", "tmp_bytes", "held_bytes", "output_bytes")

every_level = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def test_these_are_the_levels() -> None:
    assert LEVELS == ["ci", "interactive", "offline", "overnight", "supervised"]


@every_level
def test_nothing_of_the_person_is_given(policy: Policy) -> None:
    lists = (policy.write, policy.hold, policy.read, policy.hide)
    assert (*lists, policy.gpu) == ((), (), (), (), False)
    assert policy.set_values == (("PIP_RETRIES", "0"), ("npm_config_fetch_retries", "0"))


@every_level
@pytest.mark.parametrize("path", CREDENTIALS)
def test_no_secret_is_given(path: str, policy: Policy) -> None:
    assert [folder for folder in policy.system if beneath(path, folder)] == []


@every_level
@pytest.mark.parametrize("path", NEEDED)
def test_what_toolchains_need_is_given(path: str, policy: Policy) -> None:
    assert [folder for folder in policy.system if beneath(path, folder)]


@every_level
def test_no_entry_needs_another(policy: Policy) -> None:
    """An entry inside another would be one that nobody can take away."""
    inner = [
        path for path in policy.system for folder in policy.system if path != folder and beneath(path, folder)
    ]
    assert inner == []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "home", ["/root", "/home/ada", "/opt/service", "/usr/local/service", "/var/lib/jenkins", "/"]
)
def test_it_can_be_read_whatever_the_home_folder(home: str, level: str) -> None:
    assert made(level, home=home).policy.name == level


@every_level
@pytest.mark.parametrize(
    "name",
    [
        "LC_PVE_TICKET",
        "SSH_AUTH_SOCK",
        "EDITOR",
        "PAGER",
        "HOME",
        "PATH",
        "DISPLAY",
        "HTTP_PROXY",
        "AWS_PROFILE",
        "TMPDIR",
    ],
)
def test_the_environment_hands_on_no_such_name(name: str, policy: Policy) -> None:
    assert name not in policy.pass_names
    assert not [pattern for pattern in policy.pass_names if pattern.endswith("*")]


@every_level
def test_no_name_that_is_handed_on_speaks_of_a_secret(policy: Policy) -> None:
    words = "TOKEN KEY SECRET PASS AUTH CREDENTIAL PROXY SOCK URL GITHUB_ENV _PATH".split()
    assert [name for name in policy.pass_names if any(name.endswith(word) for word in words)] == []


def test_overnight_is_as_narrow_as_it_was() -> None:
    found = POLICIES["overnight"]
    assert len(found.system) == 107
    assert len(found.pass_names) == 26
    assert found.toolchains == tuple(TOOLCHAINS)
    assert found.terminal == ()
    assert found.deliver == ("commands",)
    assert (found.processes, found.open_files, found.memory_bytes) == (4096, 65536, 16 << 30)
    assert (found.tmp_bytes, found.held_bytes, found.output_bytes) == (2 << 30, 4 << 30, 4 << 30)
    assert found.timeout == 12 * 3600.0
    assert found.accept == ("limits-memory", "landlock", "landlock-rights")


def is_within(less: Policy, more: Policy) -> bool:
    """Whether `less` gives nothing that `more` does not."""
    lists = all(set(getattr(less, field)) <= set(getattr(more, field)) for field in (*LISTS, "pass_names"))
    amounts = all(getattr(less, field) <= getattr(more, field) for field in LIMITS)
    time = (less.timeout or float("inf")) <= (more.timeout or float("inf"))
    return lists and amounts and time


def test_each_level_is_wider_than_the_one_before() -> None:
    order = [POLICIES[name] for name in ("offline", "overnight", "supervised", "interactive")]
    for less, more in pairwise(order):
        assert is_within(less, more), f"{less.name} gives what {more.name} does not"
        assert not is_within(more, less)


def test_a_build_server_has_no_terminal_and_little_time() -> None:
    found = POLICIES["ci"]
    assert found.terminal == ()
    assert found.timeout == 3600.0
    assert not {"TERM", "COLORTERM", "COLUMNS", "LINES", "TERM_PROGRAM"} & set(found.pass_names)
    assert found.accept == ("limits-memory", "landlock-rights"), "a kernel without Landlock is refused"


def test_a_build_server_has_nothing_delivered_that_its_later_steps_would_run() -> None:
    assert {name for name, policy in POLICIES.items() if policy.deliver} == set(LEVELS) - {"ci"}
    assert POLICIES["ci"].deliver == ()


@every_level
def test_the_keys_of_a_git_config_wait_for_a_person(policy: Policy) -> None:
    assert GIT_CONFIG not in policy.deliver


@every_level
def test_a_tree_that_cannot_be_held_refuses_the_run(policy: Policy) -> None:
    assert "hold" in LOSSES
    assert "hold" not in policy.accept


def test_offline_looks_for_nothing_of_the_person_and_shares_no_cache() -> None:
    assert POLICIES["offline"].toolchains == ()


def test_every_part_is_used_by_some_level() -> None:
    used = {source for policy in POLICIES.values() for source, _ in policy.sources}
    folder = Path(shipped_folder())
    assert {folder / path.relative_to(CHECKOUT / "policies") for path in SHIPPED} == set(map(Path, used))
    assert len(PARTS) >= 2


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_value_and_every_group_of_entries_says_why(path: Path) -> None:
    """A line stands below a comment, or has its own; a blank line or another table ends what a comment covers.

    What needs none: name and description, which are words, and the ends of arrays.
    """
    bare, covered = [], False
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("["):
            covered = False
        elif text:
            covered = covered or text.startswith("#") or "  #" in line
        else:
            covered = False
        if text and not covered and not text.startswith(("[", "]", "name =", "description =")):
            bare.append(line)
    assert bare == []


def same_as_overnight(level: str) -> Iterator[str]:
    """The keys of which the file of `level` says that they are as in overnight, each with its table."""
    table, covered = "", False
    for line in (CHECKOUT / "policies" / f"{level}.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            table, covered = line.strip("[]"), False
        covered = line == "# As in overnight." or (covered and bool(line) and not line.startswith("#"))
        if "=" in line and (covered or "# as in overnight" in line):
            yield f"{table}.{line.partition(' =')[0]}"


@pytest.mark.parametrize("level", [level for level in LEVELS if level != "overnight"])
def test_what_is_said_to_be_as_in_overnight_is(level: str) -> None:
    def value(name: str, key: str) -> object:
        tables = tomllib.loads((CHECKOUT / "policies" / f"{name}.toml").read_text(encoding="utf-8"))
        table, _, last = key.rpartition(".")
        return (tables[table] if table else tables)[last]

    keys = list(same_as_overnight(level))
    assert len(keys) >= 3
    assert [key for key in keys if value(level, key) != value("overnight", key)] == []


@every_level
def test_each_accepted_loss_is_one_that_there_is(policy: Policy) -> None:
    assert set(policy.accept) < set(LOSSES)
