"""Issue 3, Must show 2: toolchains in a home folder run inside, their credentials are absent, and what package managers
keep is the workspace's own.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.homes import CANARY, CREDENTIALS, MINOR, NODE, OTHERS, TOOLCHAIN, VERSION, furnish
from support.installed import Installed
from support.jails import Jail, make_jail
from support.work import ROOT_ONCE, Ground, Said, make_ground, row

READ = r"""
import json, os, sys
names, canary = json.loads(sys.argv[1])
found = []
for name in names:
    try:
        with open(os.path.join(os.environ["HOME"], name)) as file:
            found += [name] * (canary in file.read())
    except OSError:
        pass
print(json.dumps(found))
"""
"""Which of the person's files can be read."""

WORK = row(r"""
pyenv:
    pyenv; python -c 'import sys; print(sys.prefix, sys.version_info[:2] >= (3, 9))'
node:
    node -p 'process.execPath'; npm
uv:
    uv -c 'import sys; print(sys.prefix)'; lint
cargo:
    rustup; cargo
local:
    cow; agent; mine
read-only:
    for folder in ~/.pyenv/versions ~/.nvm/versions ~/.cargo/bin ~/.rustup/toolchains ~/.local/bin
    do touch $folder/planted 2>&1 || true; done
names:
    cd ~; ls -A . .cargo .local/share .local/share/uv .nvm
""")


class Home(NamedTuple):
    """A jail whose home is furnished, and PATH as its person has it."""

    ground: Ground
    path: str

    @property
    def jail(self) -> Jail:
        return self.ground.jail


@pytest.fixture(scope="module", params=ROOT_ONCE)
def home(request: pytest.FixtureRequest, installed: Installed, open_folder: Path) -> Home:
    ground = make_ground(request.param, installed, open_folder / "toolchains")
    path = furnish(ground.jail.home)
    jail = ground.jail._replace(environment={**ground.jail.environment, "PATH": path})
    return Home(ground._replace(jail=jail), path)


@pytest.fixture(scope="module")
def work(home: Home) -> dict[str, Said]:
    return home.ground.work(WORK)


def lines(said: Said) -> list[str]:
    assert said.code == 0, said.text
    return said.text.splitlines()


def test_pyenvs_shim_starts_the_version_that_pyenv_names(home: Home, work: dict[str, Said]) -> None:
    expected = [VERSION, f"{home.jail.home}/.pyenv/versions/{VERSION} True"]
    assert lines(work["pyenv"]) == expected


def test_the_node_of_nvm_runs_and_its_npm(home: Home, work: dict[str, Said]) -> None:
    node = f"{home.jail.home}/.nvm/versions/node/{NODE}/bin/node"
    assert lines(work["node"]) == [node, f"{node} 9.5.1"]


def test_the_pythons_and_tools_of_uv_run(home: Home, work: dict[str, Said]) -> None:
    share = f"{home.jail.home}/.local/share/uv"
    first, second = lines(work["uv"])
    assert first.startswith(f"{share}/python/cpython-{MINOR}")
    assert second == f"lint works {share}/tools/lint"


def test_rustups_proxies_run_and_cargo_writes_the_workspaces_own_registry(work: dict[str, Said]) -> None:
    assert lines(work["cargo"]) == [TOOLCHAIN, "cargo 1.80.0 /run/jail/cache/cargo"]


def test_links_and_scripts_of_the_persons_bin_run(home: Home, work: dict[str, Said]) -> None:
    cow = f"cow works {home.jail.home}/.local/share/pipx/venvs/cow"
    assert lines(work["local"]) == [cow, "agent works", "mine works"]


def test_nothing_of_a_toolchain_can_be_written(home: Home, work: dict[str, Said]) -> None:
    assert [line.rpartition(": ")[2] for line in lines(work["read-only"])] == ["Read-only file system"] * 5
    assert not list(home.jail.home.rglob("planted"))


def test_credentials_and_other_things_of_the_person_are_absent(home: Home, work: dict[str, Said]) -> None:
    asked = json.dumps([[*CREDENTIALS, *OTHERS], CANARY])
    assert home.jail.inside(READ, asked) == []
    assert "credentials" not in work["names"].text
    # The control: without walls each of them is read.
    assert home.jail.outside(READ, asked) == [*CREDENTIALS, *OTHERS]


def test_the_plan_says_what_was_found_and_through_what(home: Home) -> None:
    done = home.jail.call("plan", "--", "true")
    notes = [line for line in done.stdout.splitlines() if line.startswith("note: toolchain")]
    text, at = "\n".join(notes), home.jail.home
    for part, found in (
        ("rust", f"cargo in {at}/.cargo, through {at}/.cargo/bin"),
        ("rust", f"rustup in {at}/.rustup, through"),
        ("python", f"pyenv in {at}/.pyenv, through {at}/.pyenv/shims"),
        ("node", f"nvm in {at}/.nvm, through {at}/.nvm/versions/node/{NODE}/bin"),
        ("python", f"uv's tools in {at}/.local/share/uv/tools, through {at}/.local/bin/lint"),
    ):
        assert f"toolchain {part}: {found}" in text
    assert "absent: credentials.toml" in text
    assert "unsigned" in done.stdout


def policy_using(jail: Jail, folder: Path, toolchains: list[str]) -> Path:
    """The shipped policy with these toolchains in place of its part of them."""
    text = (jail.installed.packages / "jail" / "policies" / "overnight.toml").read_text()
    assert (text.count('"toolchains", '), text.count("[toolchains]\n")) == (1, 1)
    text = text.replace('"toolchains", ', "")
    path = folder / "policy.toml"
    path.write_text(text.replace("[toolchains]\n", f"[toolchains]\nuse = {json.dumps(toolchains)}\n"))
    return path


def test_a_toolchain_that_the_policy_does_not_use_is_absent(home: Home, tmp_path: Path) -> None:
    policy = policy_using(home.jail, tmp_path, ["python", "rust", "go", "java", "ruby", "cc"])
    script = "command -v node; command -v pyenv; test -e ~/.nvm || echo absent"
    done = home.jail.run("sh", "-c", script, options=("--policy", policy))
    assert done.stdout.splitlines() == ["/usr/bin/node", f"{home.jail.home}/.pyenv/bin/pyenv", "absent"]


def test_gpus_come_only_when_asked_for(jail: Jail) -> None:
    has = bool(list(Path("/dev").glob("nvidia[0-9]*")) + list(Path("/dev").glob("dri/renderD*")))
    asked = jail.call("plan", "--gpu", "--", "true").stdout
    assert ("note: gpu: this host shows no GPU device" in asked) is not has
    assert "GPU" not in jail.call("plan", "--", "true").stdout
    done = jail.run("sh", "-c", "ls /dev", options=("--gpu",))
    assert done.returncode == 0, done.stderr
    assert any(name in done.stdout for name in ("nvidia", "dri")) is has


PACKAGES = r"""
import json, os, subprocess, sys
home, cache = os.environ["HOME"], os.environ.get("XDG_CACHE_HOME", "")
pip = "python3 -m pip install --quiet --no-index --target /tmp/pip ./wheels/local_one-1.0-py3-none-any.whl"
npm = "npm install --offline --no-audit --no-fund --silent ./local-one-1.0.0.tgz"
found = {"before": sorted(os.listdir(cache)), "person": os.path.exists(home + "/.cache/pip/mark")}
for name, command in (("pip", pip), ("npm", npm)):
    done = subprocess.run(command.split(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    found[name] = [done.returncode, done.stderr]
found["npm cache"] = os.path.isdir(cache + "/npm/_cacache")
with open(home + "/.cache/mark", "a") as mark:
    mark.write("x")
found["marks"] = os.path.getsize(cache + "/mark")
found["environment"] = {name: value for name, value in os.environ.items() if value.startswith(cache)}
print(json.dumps(found))
"""


@pytest.fixture
def cold(installed: Installed, tmp_path: Path) -> Jail:
    """A jail whose cache lies in its own home, as everybody's does."""
    return make_jail(installed, tmp_path)


@pytest.fixture
def packages(cold: Jail) -> Jail:
    """A workspace with a local wheel and a local tarball, and a person with a cache of their own."""
    import io
    import tarfile
    import zipfile

    (cold.workspace / "wheels").mkdir()
    about = "Metadata-Version: 2.1\nName: local-one\nVersion: 1.0\n"
    wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(cold.workspace / "wheels/local_one-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("local_one.py", "one = 1\n")
        archive.writestr("local_one-1.0.dist-info/METADATA", about)
        archive.writestr("local_one-1.0.dist-info/WHEEL", wheel)
        archive.writestr("local_one-1.0.dist-info/RECORD", "")
    content = json.dumps({"name": "local-one", "version": "1.0.0"}).encode()
    with tarfile.open(cold.workspace / "local-one-1.0.0.tgz", "w:gz") as packed:
        member = tarfile.TarInfo("package/package.json")
        member.size = len(content)
        packed.addfile(member, io.BytesIO(content))
    mark = cold.home / ".cache" / "pip" / "mark"
    mark.parent.mkdir(parents=True)
    mark.write_text(CANARY)
    return cold


def test_a_later_run_finds_the_cache_of_an_earlier_one_and_never_the_persons(packages: Jail) -> None:
    runs: list[dict[str, Any]] = [packages.inside(PACKAGES) for _ in range(2)]
    for found in runs:
        assert (found["pip"], found["npm"]) == ([0, ""], [0, ""])
        assert found["npm cache"]
        assert not found["person"]
    assert [found["marks"] for found in runs] == [1, 2]
    assert runs[0]["before"] == []
    assert {"npm", "mark"} <= set(runs[1]["before"])
    assert runs[1]["environment"]["GOPATH"] == "/run/jail/cache/go"
    assert sorted(os.listdir(packages.home / ".cache")) == ["jail", "pip"]
    assert packages.outside(READ, json.dumps([[".cache/pip/mark"], CANARY])) == [".cache/pip/mark"]


def test_another_workspace_has_another_cache_and_one_made_later_at_its_path_too(jail: Jail) -> None:
    other = jail.home.parent / "other"
    other.mkdir()
    count = "echo x >> ~/.cache/mark; wc -l < ~/.cache/mark; chmod 000 ~/.cache/"

    def marks(cwd: Path) -> str:
        return jail.run("sh", "-c", count, cwd=cwd).stdout.strip()

    assert [marks(cwd) for cwd in (jail.workspace, other, other)] == ["1", "1", "2"]
    other.rmdir()
    other.mkdir()
    assert marks(other) == "1"


def test_links_that_an_earlier_run_planted_lead_no_later_one_out(jail: Jail) -> None:
    secret = jail.home / "secret"
    secret.mkdir()
    (secret / "key").write_text(CANARY)
    plant = f"cd ~/.cache; ln -s {secret} npm; ln -s / root; ln -s ../workspace up; rmdir ../cache ../../cache; true"
    assert jail.run("sh", "-c", plant).returncode == 0
    look = "cat ~/.cache/npm/key ~/.cache/up/* ~/.cache/../workspace; ls -A /run/jail; exit 0"
    done = jail.run("sh", "-c", look)
    assert CANARY not in done.stdout
    assert str(jail.workspace) not in done.stdout
    assert done.stdout.split() == ["README", "absent", "cache", "empty", "empty.d"]


def test_a_cache_folder_that_became_a_link_refuses_the_run(cold: Jail) -> None:
    assert cold.run("true").returncode == 0
    (folder,) = (cold.home / ".cache" / "jail" / "caches").glob("*/files")
    shutil.rmtree(folder)
    folder.symlink_to(cold.home)
    done = cold.run("echo", "ran")
    assert (done.returncode, done.stdout) == (125, "")
    assert "cache" in done.stderr


def test_without_toolchains_there_is_no_cache(cold: Jail, tmp_path: Path) -> None:
    script = "ls -A ~ /run/jail; env"
    assert "cache" in cold.run("sh", "-c", script).stdout
    shutil.rmtree(cold.home / ".cache/jail/caches")
    done = cold.run("sh", "-c", script, options=("--policy", policy_using(cold, tmp_path, [])))
    assert done.returncode == 0, done.stderr
    assert "cache" not in done.stdout
    assert not (cold.home / ".cache/jail/caches").exists()
