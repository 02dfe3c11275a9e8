"""The shipped policy, which is the default and the strictest."""

import pytest

from jail.policy.parse import parse
from jail.policy.paths import beneath
from jail.policy.value import Policy
from support.installed import CHECKOUT

CONTENT = (CHECKOUT / "policies" / "overnight.toml").read_bytes()

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


@pytest.fixture(scope="module")
def overnight() -> Policy:
    return parse(CONTENT, "overnight.toml", "/home/ada")


def test_nothing_of_the_person_is_given(overnight: Policy) -> None:
    assert (overnight.write, overnight.read, overnight.hide) == ((), (), ())
    assert overnight.set_values == (("PIP_RETRIES", "0"), ("npm_config_fetch_retries", "0"))


@pytest.mark.parametrize("path", CREDENTIALS)
def test_no_secret_is_given(path: str, overnight: Policy) -> None:
    assert [folder for folder in overnight.system if beneath(path, folder)] == []


@pytest.mark.parametrize("path", NEEDED)
def test_what_toolchains_need_is_given(path: str, overnight: Policy) -> None:
    assert [folder for folder in overnight.system if beneath(path, folder)]


def test_no_entry_needs_another(overnight: Policy) -> None:
    """An entry inside another would be one that nobody can take away."""
    inner = [
        path
        for path in overnight.system
        for folder in overnight.system
        if path != folder and beneath(path, folder)
    ]
    assert inner == []


@pytest.mark.parametrize(
    "home", ["/root", "/home/ada", "/opt/service", "/usr/local/service", "/var/lib/jenkins", "/"]
)
def test_it_can_be_read_whatever_the_home_folder(home: str) -> None:
    assert parse(CONTENT, "overnight.toml", home).name == "overnight"


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
def test_the_environment_hands_on_no_such_name(name: str, overnight: Policy) -> None:
    assert name not in overnight.pass_names
    assert not [pattern for pattern in overnight.pass_names if pattern.endswith("*")]


def test_limits_and_acceptance(overnight: Policy) -> None:
    assert (overnight.processes, overnight.open_files) == (4096, 65536)
    assert (overnight.tmp_bytes, overnight.timeout) == (2 << 30, 12 * 3600.0)
    assert overnight.accept == ("limits-memory", "landlock", "landlock-rights")


def test_every_group_of_entries_says_why() -> None:
    """A line of entries stands below a comment, or has its own; a blank line ends what a comment covers."""
    text = CONTENT.decode().partition("system = [")[2].partition("\n]")[0]
    bare, covered = [], False
    for line in text.splitlines():
        covered = bool(line.strip()) and (covered or line.strip().startswith("#") or "  #" in line)
        if line.strip() and not covered:
            bare.append(line)
    assert bare == []
