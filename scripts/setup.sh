# Sourced by scripts/jail and scripts/test: an environment of its own for this checkout, made when first needed.
#
# Where: ${XDG_DATA_HOME:-~/.local/share}/jail, and for root /var/lib/jail, since the walls that root starts are run by an
# unprivileged uid, which may not enter /root. Never in the checkout: an agent that works on jail's own source must not
# be able to change the jail that holds it. So the checkout is installed (not editable), and installed again when it changed.
#
# Words: root = the checkout; venv = the environment; stamp = a file in it, written last: no stamp, half built.

# What loads code into programs; the entry, which scripts/jail ends in, drops the same and more.
unset LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT PYTHONPATH PYTHONHOME PYTHONSTARTUP

say() {
    printf 'jail: %s\n' "$1" >&2
    shift
    for line; do printf 'jail:   %s\n' "$line" >&2; done
}

fail() {
    say "$@"
    exit 125
}

# name_places ROOT KIND: sets root, uid, state, venv, stamp, log for KIND (venv for use, test for the tests).
name_places() {
    root=$1
    uid=$(/usr/bin/id -u)
    if [ "$uid" = 0 ]; then
        state=/var/lib/jail
    else
        case ${XDG_DATA_HOME:-} in
        /*) state=$XDG_DATA_HOME/jail ;;
        *) state=${HOME:?HOME is not set}/.local/share/jail ;;
        esac
    fi
    key=$(printf '%s' "$root" | /usr/bin/cksum)
    key=$2-${key%% *}
    venv=$state/$key
    stamp=$venv/installed-from-checkout
    log=$state/$key.log
}

# True where the environment was made from the checkout as it is now. ctime, since a copied file can bring an old mtime.
is_current() {
    [ -f "$stamp" ] && [ -x "$venv/bin/python" ] && [ -x "$venv/bin/jail" ] &&
        [ -z "$(cd "$root" && /usr/bin/find jail policies pyproject.toml scripts/installed \
            -name __pycache__ -prune -o -cnewer "$stamp" -print -quit)" ]
}

# make_current [EXTRA]: make or renew the environment. In a subshell: umask, PATH and the lock end with it.
make_current() (
    unset PIP_TARGET PIP_PREFIX PIP_ROOT PIP_USER PIP_REQUIRE_VIRTUALENV VIRTUAL_ENV
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    umask 022
    mkdir -p "$state" || fail "cannot make the folder for jail's own environment" "where: $state"
    take_lock
    is_current && exit 0
    : >"$log"
    if [ -f "$stamp" ] && [ -x "$venv/bin/python" ]; then
        say "the checkout has changed: installing it again"
    else
        say "first use of this checkout: setting up $venv, once"
        install_missing_packages
        rm -rf "$venv"
        "$python" -I -m venv "$venv" >>"$log" 2>&1 ||
            fail "cannot make a virtual environment" "where: $venv, by $python; log: $log"
    fi
    rm -f "$stamp"
    : >"$venv/started" # its time is the stamp's: what changes while pip works is seen at the next call
    (cd / && "$venv/bin/python" -I -m pip install --disable-pip-version-check --no-input --use-pep517 "$root${1:+[$1]}") >>"$log" 2>&1 ||
        fail "pip could not install jail and its libraries" \
            "where: $(tail -n 1 "$log"); log: $log" \
            "to do: see the log; pip uses this machine's own configuration (pip config list)"
    mv "$venv/started" "$stamp"
)

# Two first calls at once: the second waits for the first.
take_lock() {
    if command -v flock >/dev/null; then
        exec 9>"$venv.lock"
        flock 9
        return
    fi
    until mkdir "$venv.lock.d" 2>/dev/null; do
        read -r holder 2>/dev/null <"$venv.lock.d/pid" && ! kill -0 "$holder" 2>/dev/null && rm -rf "$venv.lock.d"
        sleep 0.2
    done
    echo $$ >"$venv.lock.d/pid"
    trap 'rm -rf "$venv.lock.d"' EXIT
}

# --- the interpreter, and what building needs --------------------------------------------------------------------------

# True where every uid may enter the folder of $1 and run it: walls started by root are run by another uid.
is_open_to_all() {
    file=$(readlink -f -- "$1") || return 1
    [ -n "$(find "$file" -maxdepth 0 -perm -o+x)" ] || return 1
    while file=${file%/*} && [ -n "$file" ]; do
        [ -n "$(find "$file" -maxdepth 0 -perm -o+x)" ] || return 1
    done
}

is_python() {
    [ -x "$1" ] && "$1" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null &&
        { [ "$uid" != 0 ] || is_open_to_all "$1"; }
}

can_build() {
    "$1" -I -c 'import ensurepip, os, sys, sysconfig, venv
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null
}

# Sets python: one that can build, else any that is new enough, else nothing. Never one found in PATH: that may lie in a
# workspace, or be a shim of pyenv that hands over to a Python under somebody's home.
choose_python() {
    python=
    for candidate in ${JAIL_PYTHON:+"$JAIL_PYTHON"} /usr/bin/python3 /usr/bin/python3.[1-9][0-9] /usr/local/bin/python3.[1-9][0-9]; do
        is_python "$candidate" || continue
        [ -n "$python" ] || python=$candidate
        if can_build "$candidate"; then
            python=$candidate
            return
        fi
    done
}

# Prints the Debian packages that are missing, one a line.
missing_packages() {
    if [ -z "$python" ]; then
        version=$(python_of_apt)
        printf '%s\n' "$version" "$version-venv" "$version-dev"
    elif ! can_build "$python"; then
        version=$("$python" -I -S -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
        "$python" -I -c 'import ensurepip, venv' 2>/dev/null || echo "$version-venv"
        "$python" -I -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || echo "$version-dev"
    fi
    command -v gcc >/dev/null || printf '%s\n' gcc libc6-dev
    [ -e /usr/include/sys/capability.h ] || echo libcap-dev
    for library in /usr/lib/libseccomp.so.2 /usr/lib64/libseccomp.so.2 /usr/lib/*/libseccomp.so.2 /lib/*/libseccomp.so.2; do
        [ ! -e "$library" ] || return 0
    done
    echo libseccomp2
}

# Debian's python3 where it is new enough, else (Ubuntu 22.04) the newest that stands beside it.
python_of_apt() {
    minor=$(apt-cache policy python3 2>/dev/null | sed -n 's/^ *Candidate: 3\.\([0-9]*\)\..*/\1/p')
    if [ "${minor:-0}" -ge 11 ]; then
        echo python3
        return
    fi
    for minor in 14 13 12; do
        if apt-cache show "python3.$minor-venv" >/dev/null 2>&1; then
            echo "python3.$minor"
            return
        fi
    done
    echo python3.11
}

install_missing_packages() {
    choose_python
    missing=$(missing_packages)
    if [ -n "$missing" ]; then
        # Lists first where the choice of Python depends on them.
        [ -n "$python" ] || { may_install && update_lists && missing=$(missing_packages); } || :
        apt_install $missing # word by word
        choose_python
    fi
    [ -n "$python" ] || fail "no Python of at least 3.11 that every user may run was found" \
        "where: /usr/bin, /usr/local/bin" "to do: install one, or name one: JAIL_PYTHON=/path/to/python3.12 scripts/jail …"
}

may_install() {
    [ -x /usr/bin/apt-get ] || return 1
    if [ "$uid" = 0 ]; then
        as_root=
    elif sudo -n true 2>/dev/null; then
        as_root='sudo -n'
    else
        return 1
    fi
}

update_lists() {
    [ -z "${lists_are_new:-}" ] || return 1
    lists_are_new=yes
    $as_root /usr/bin/apt-get -q update >>"$log" 2>&1
}

# apt_install PACKAGE…: as root, or through sudo where that asks for no password; else names them and ends.
apt_install() {
    may_install || fail "packages of the system are missing: $*" "to do: sudo apt-get install $*" \
        "(on another distribution: Python 3.11 or newer with venv and headers, gcc, and the libraries libcap (headers) and libseccomp)"
    say "installing $*"
    install="$as_root /usr/bin/env DEBIAN_FRONTEND=noninteractive /usr/bin/apt-get -q -y --no-install-recommends install"
    $install "$@" >>"$log" 2>&1 || { update_lists && $install "$@" >>"$log" 2>&1; } ||
        fail "apt-get could not install $*" "where: $(tail -n 1 "$log"); log: $log"
}
