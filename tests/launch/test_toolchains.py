"""What PATH leads to, for each manager as its installer lays it out: what is given, what is absent, and no more.

A layout is a list of paths in a home folder: `name -> target` is a link, `name = text` a file, `name/` a
folder.
"""

import os
from pathlib import Path

import pytest

from jail.launch import searchpath, toolchains, ways
from jail.plan.facts import Tools
from jail.policy.value import TOOLCHAINS

SYSTEM = ("/usr", "/etc/alternatives")
SH = "#!/bin/sh"

LAYOUTS: dict[str, tuple[str, str, str, str, str]] = {
    "pyenv": (
        (
            ".pyenv/shims/python = #!/usr/bin/env bash; .pyenv/libexec/pyenv = x; .pyenv/version = 3.12.1; .pyenv/bin/;"
            ".pyenv/versions/3.12.1/bin/python = x; .pyenv/versions/3.12.1/pip.conf = canary; .pyenv/.netrc = canary;"
            ".pyenv/sources/notes = mine"
        ),
        "~/.pyenv/shims ~/.pyenv/bin",
        ".pyenv/shims .pyenv/libexec .pyenv/version .pyenv/bin .pyenv/versions",
        ".pyenv/versions/3.12.1/pip.conf .pyenv/.netrc",
        "PYENV_ROOT=~/.pyenv",
    ),
    "uv's Pythons, by the command in ~/.local/bin": (
        (
            ".local/bin/uv = x; .local/share/uv/python/cpython-3.12/bin/python3.12 = x;"
            ".local/share/uv/credentials/credentials.toml = canary"
        ),
        "~/.local/bin",
        ".local/share/uv/python",
        "",
        "UV_PYTHON_INSTALL_DIR=~/.local/share/uv/python",
    ),
    "a tool of uv, by its link": (
        (
            ".local/bin/black -> ../share/uv/tools/black/bin/black;"
            ".local/share/uv/tools/black/bin/black = #!/bin/sh; .local/share/uv/tools/black/pyvenv.cfg = home = /usr/bin;"
            ".local/share/uv/tools/black/bin/python -> ~/.local/share/uv/python/cpython-3.12/bin/python3.12;"
            ".local/share/uv/tools/black/uv-receipt.toml = canary;"
            ".local/share/uv/python/cpython-3.12/bin/python3.12 = x"
        ),
        "~/.local/bin",
        ".local/share/uv/tools .local/share/uv/python",
        ".local/share/uv/tools/black/uv-receipt.toml",
        "",
    ),
    "pipx": (
        (
            ".local/bin/cow -> ~/.local/share/pipx/venvs/cow/bin/cow; .local/share/pipx/venvs/cow/bin/cow = #!/bin/sh;"
            ".local/share/pipx/venvs/cow/pipx_metadata.json = canary; .local/share/pipx/shared/pyvenv.cfg = x;"
            ".local/share/pipx/logs/log = mine"
        ),
        "~/.local/bin",
        ".local/share/pipx/venvs .local/share/pipx/shared",
        ".local/share/pipx/venvs/cow/pipx_metadata.json",
        "",
    ),
    "pip install --user": (
        (
            ".local/bin/tool = #!/usr/bin/python3; .local/lib/python3.11/site-packages/tool.py = x;"
            ".local/lib/other/secret = canary"
        ),
        "~/.local/bin",
        ".local/lib/python3.11/site-packages",
        "",
        "",
    ),
    "conda": (
        (
            "miniconda3/condabin/conda = x; miniconda3/bin/python3 = x; miniconda3/conda-meta/state = canary;"
            "miniconda3/lib/; miniconda3/.condarc = canary; miniconda3/pkgs/x = big; miniconda3/etc/conda/x = x;"
            "miniconda3/envs/a/conda-meta/state = canary; miniconda3/envs/a/pip.conf = canary"
        ),
        "~/miniconda3/condabin ~/miniconda3/bin",
        (
            "miniconda3/bin miniconda3/lib miniconda3/condabin miniconda3/conda-meta miniconda3/envs "
            "miniconda3/etc/conda"
        ),
        (
            "miniconda3/.condarc miniconda3/conda-meta/state miniconda3/envs/a/conda-meta/state "
            "miniconda3/envs/a/pip.conf"
        ),
        "",
    ),
    "nvm": (
        (
            ".nvm/versions/node/v20/bin/node = x; .nvm/versions/node/v20/etc/npmrc = canary; .nvm/nvm.sh = x;"
            ".nvm/alias/default = 20; .nvm/.cache/bin/node.tar = x; .nvm/.npmrc = canary"
        ),
        "~/.nvm/versions/node/v20/bin",
        ".nvm/versions .nvm/nvm.sh .nvm/alias",
        ".nvm/versions/node/v20/etc .nvm/.npmrc",
        "NVM_DIR=~/.nvm",
    ),
    "fnm, through the link of one shell": (
        (
            "run/fnm_multishells/1 -> ~/.local/share/fnm/node-versions/v20/installation;"
            ".local/share/fnm/node-versions/v20/installation/bin/node = x; .local/share/fnm/aliases/default/;"
            ".local/share/fnm/node-versions/v20/installation/etc/npmrc = canary"
        ),
        "~/run/fnm_multishells/1/bin",
        ".local/share/fnm/node-versions .local/share/fnm/aliases",
        ".local/share/fnm/node-versions/v20/installation/etc",
        "FNM_DIR=~/.local/share/fnm",
    ),
    "volta": (
        (
            ".volta/bin/node -> volta-shim; .volta/bin/volta-shim = x; .volta/tools/image/node/20/bin/node = x;"
            ".volta/layout.v4 =; .volta/tools/image/node/20/etc/npmrc = canary; .volta/hooks.json = canary;"
            ".volta/cache/node/index.json = x"
        ),
        "~/.volta/bin",
        ".volta/bin .volta/tools .volta/layout.v4",
        ".volta/tools/image/node/20/etc .volta/hooks.json",
        "VOLTA_HOME=~/.volta",
    ),
    "n": (
        "n/bin/node = x; n/n/versions/node/20/bin/node = x; n/lib/; n/etc/npmrc = canary",
        "~/n/bin",
        "n/bin n/lib n/n",
        "n/etc",
        "",
    ),
    "npm install -g with a prefix of the person": (
        (
            ".npm-global/bin/tsc -> ../lib/node_modules/typescript/bin/tsc; .npm-global/etc/npmrc = canary;"
            ".npm-global/lib/node_modules/typescript/bin/tsc = #!/usr/bin/env node"
        ),
        "~/.npm-global/bin",
        ".npm-global/lib/node_modules",
        "",
        "",
    ),
    "rustup and cargo": (
        (
            ".cargo/bin/cargo -> rustup; .cargo/bin/rustup = x; .cargo/credentials.toml = canary; .cargo/env = x;"
            ".cargo/config.toml = canary; .cargo/registry/x = x; .rustup/settings.toml = x; .rustup/tmp/;"
            ".rustup/toolchains/stable/bin/cargo = x; .rustup/downloads/x = x"
        ),
        "~/.cargo/bin",
        ".cargo/bin .cargo/env .rustup/toolchains .rustup/settings.toml",
        ".cargo/credentials.toml .cargo/config.toml",
        "RUSTUP_HOME=~/.rustup",
    ),
    "go install": ("go/bin/gopls = x; go/pkg/mod/x = x; go/src/mine = x", "~/go/bin", "go/bin", "", ""),
    "a Go of one's own": (
        "tools/go/bin/go = x; tools/go/VERSION = go1.22; tools/go/src/; tools/go/pkg/; tools/go/mine = x",
        "~/tools/go/bin",
        "tools/go/bin tools/go/VERSION tools/go/src tools/go/pkg",
        "",
        "",
    ),
    "sdkman": (
        (
            ".sdkman/candidates/java/21/bin/java = x; .sdkman/candidates/java/current -> 21; .sdkman/tmp/x = x;"
            ".sdkman/candidates/maven/3.9/conf/settings.xml = canary; .sdkman/etc/config = canary"
        ),
        "~/.sdkman/candidates/java/current/bin",
        ".sdkman/candidates",
        ".sdkman/candidates/maven/3.9/conf/settings.xml .sdkman/etc/config",
        "SDKMAN_DIR=~/.sdkman",
    ),
    "jenv, and the JDK that its version is": (
        (
            ".jenv/shims/java = #!/usr/bin/env bash; .jenv/libexec/jenv = x; .jenv/versions/21 -> ~/jdks/jdk-21;"
            "jdks/jdk-21/bin/java = x; jdks/jdk-21/release = x; jdks/jdk-21/mine = x;"
            "jdks/jdk-21/lib/management/jmxremote.password = canary"
        ),
        "~/.jenv/shims",
        ".jenv/shims .jenv/libexec .jenv/versions jdks/jdk-21/bin jdks/jdk-21/release jdks/jdk-21/lib",
        "jdks/jdk-21/lib/management/jmxremote.password",
        "JENV_ROOT=~/.jenv",
    ),
    "Maven unpacked": (
        (
            "opt/maven/bin/mvn = #!/bin/sh; opt/maven/boot/; opt/maven/lib/; opt/maven/conf/settings.xml = canary;"
            "opt/maven/conf/logging/x = x"
        ),
        "~/opt/maven/bin",
        "opt/maven/bin opt/maven/boot opt/maven/lib opt/maven/conf/logging",
        "opt/maven/conf/settings.xml",
        "",
    ),
    "rbenv": (
        ".rbenv/shims/ruby = #!/usr/bin/env bash; .rbenv/libexec/rbenv = x; .rbenv/versions/3.3/etc/gemrc = canary",
        "~/.rbenv/shims",
        ".rbenv/shims .rbenv/libexec .rbenv/versions",
        ".rbenv/versions/3.3/etc",
        "RBENV_ROOT=~/.rbenv",
    ),
    "rvm": (
        (
            ".rvm/rubies/ruby-3/bin/ruby = x; .rvm/gems/ruby-3/bin/rake = #!/usr/bin/env ruby; .rvm/user/db = canary;"
            ".rvm/bin/; .rvm/log/x = x"
        ),
        "~/.rvm/gems/ruby-3/bin ~/.rvm/rubies/ruby-3/bin ~/.rvm/bin",
        ".rvm/rubies .rvm/gems .rvm/bin",
        ".rvm/user",
        "rvm_path=~/.rvm",
    ),
    "gem install --user-install": (
        ".local/share/gem/ruby/3.1.0/bin/rake = #!/usr/bin/ruby; .local/share/gem/credentials = canary",
        "~/.local/share/gem/ruby/3.1.0/bin",
        ".local/share/gem/ruby",
        ".local/share/gem/credentials",
        "",
    ),
    "asdf": (
        (
            ".asdf/shims/node = #!/usr/bin/env bash; .asdf/bin/asdf = x; .asdf/installs/nodejs/20/etc/npmrc = canary;"
            ".asdf/installs/node/18/etc/npmrc = canary; .asdf/installs/nodejs/20/bin/node = x; .asdf/plugins/nodejs/bin/x = x; .asdf/plugins/nodejs/.git/config = x;"
            ".tool-versions = nodejs 20; .asdf/downloads/x = x"
        ),
        "~/.asdf/shims ~/.asdf/bin",
        ".asdf/shims .asdf/bin .asdf/installs/node .asdf/installs/nodejs .asdf/plugins",
        ".asdf/installs/nodejs/20/etc .asdf/installs/node/18/etc .asdf/plugins/nodejs/.git",
        "ASDF_DATA_DIR=~/.asdf",
    ),
    "mise, whose shims are links to it": (
        (
            ".local/share/mise/shims/node -> ~/.local/bin/mise; .local/bin/mise = x;"
            ".local/share/mise/installs/node/20/bin/node = x; .config/mise/config.toml = [tools]\nnode = '20';"
            ".config/mise/age.txt = canary"
        ),
        "~/.local/share/mise/shims",
        ".local/share/mise/shims .local/share/mise/installs/node .local/bin/mise",
        "",
        "MISE_DATA_DIR=~/.local/share/mise",
    ),
    "a cross compiler": (
        "cross/bin/arm-none-eabi-gcc = x; cross/lib/gcc/; cross/arm-none-eabi/lib/; cross/libexec/; cross/notes = mine",
        "~/cross/bin",
        "cross/bin cross/lib cross/libexec cross/arm-none-eabi",
        "",
        "",
    ),
    "a virtual environment elsewhere, and its Python": (
        (
            "venv/bin/tool = #!~/venv/bin/python; venv/bin/python -> ~/.local/share/uv/python/cpython-3.12/bin/python3.12;"
            "venv/lib/; venv/pyvenv.cfg = x; venv/pip.conf = canary; venv/notes = mine;"
            ".local/share/uv/python/cpython-3.12/bin/python3.12 = x"
        ),
        "~/venv/bin",
        "venv/bin venv/lib venv/pyvenv.cfg .local/share/uv/python",
        "venv/pip.conf",
        "",
    ),
    "one program behind two links": (
        (
            ".local/bin/agent -> ../share/agent/current; .local/share/agent/current -> versions/1.0;"
            ".local/share/agent/versions/1.0 = \x7fELF; .local/share/agent/auth.json = canary"
        ),
        "~/.local/bin",
        ".local/share/agent/versions/1.0",
        "",
        "",
    ),
    "a script that finds its parts beside it": (
        (
            ".local/bin/agent -> ~/.local/share/agent/versions/1.0/agent; .local/share/agent/versions/1.0/node = x;"
            ".local/share/agent/versions/1.0/agent = #!/usr/bin/env bash; .local/share/agent/auth.json = canary"
        ),
        "~/.local/bin",
        ".local/share/agent/versions/1.0",
        "",
        "",
    ),
    "a link into a project gives the one file": (
        "bin/deploy -> ~/src/ops/bin/deploy; src/ops/bin/deploy = #!/bin/sh; src/ops/lib/secret = canary",
        "~/bin",
        "src/ops/bin/deploy",
        "",
        "",
    ),
    "a PATH folder of no known shape gives nothing beside it": (
        "src/tool/bin/tool = #!/bin/sh; src/tool/lib/secret = canary; src/tool/share/x = canary",
        "~/src/tool/bin",
        "",
        "",
        "",
    ),
    "a link that leads to no program gives nothing": (
        "bin/notes -> ~/notes.txt; notes.txt = canary; bin/gone -> ~/nowhere",
        "~/bin",
        "",
        "",
        "",
    ),
}
"""Name → layout, PATH, what is given, what is absent, variables; all but the first with paths in the home folder.
"""


def lay_out(home: Path, layout: str) -> None:
    """Make what a layout says; programs are executable."""
    for item in filter(None, (part.strip() for part in layout.split(";"))):
        name, link, target = item.partition(" -> ")
        if not link:
            name, text, content = item.partition(" =")
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if link:
            path.symlink_to(target.replace("~", str(home)))
        elif not text:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.write_text(content.strip().replace("~", str(home)))
            if content.strip() not in ("canary", "mine"):
                path.chmod(0o755)


def search(
    home: Path,
    path: str,
    parts: tuple[str, ...] = tuple(TOOLCHAINS),
    command: str = "true",
    earlier: str = "",
    **environ: str,
) -> Tools:
    """What `path` leads to; `earlier`: a tree that a run was given before."""
    workspace = home.parent / "workspace"
    workspace.mkdir(exist_ok=True)
    entries = ":".join([*(word.replace("~", str(home)) for word in path.split()), "/usr/bin"])
    environment = {
        "PATH": entries,
        **{name: value.replace("~", str(home)) for name, value in environ.items()},
    }
    here = ways.of(str(workspace))
    written = here._replace(trees=here.trees | {earlier.replace("~", str(home))} - {""})
    found = searchpath.entries(environment, written)
    ask = searchpath.Ask(found, environment, str(home), written, SYSTEM, parts)
    return searchpath.tools(ask, command)


def given(tools: Tools, home: Path) -> set[str]:
    return {os.path.relpath(place.path, home) for tool in tools.found for place in tool.given}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "home"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_gives_what_its_programs_need_and_nothing_else(name: str, home: Path) -> None:
    layout, path, expected, absent, variables = LAYOUTS[name]
    lay_out(home, layout)
    found = search(home, path)
    assert given(found, home) == set(expected.split())
    secrets = {os.path.relpath(secret, home) for tool in found.found for secret in tool.secrets}
    assert secrets >= set(absent.split())
    for pair in variables.split():
        assert tuple(pair.replace("~", str(home)).split("=")) in found.variables
    # Nothing that holds a canary is given but what is hidden in a given folder.
    shown = [place.real for tool in found.found for place in tool.given]
    hidden = [secret for tool in found.found for secret in tool.secrets]
    for file in home.rglob("*"):
        if file.is_file() and not file.is_symlink() and file.read_text() == "canary":
            inside = any(str(file).startswith(f"{folder}/") or str(file) == folder for folder in shown)
            covered = any(str(file).startswith(f"{path}/") or str(file) == path for path in hidden)
            assert not inside or covered, file


def test_links_on_the_way_are_kept(home: Path) -> None:
    lay_out(home, LAYOUTS["one program behind two links"][0])
    links = dict(search(home, "~/.local/bin").links)
    assert links[f"{home}/.local/share/agent/current"] == "versions/1.0"


def test_a_toolchain_that_the_policy_does_not_use_leaves_path_with_a_reason(home: Path) -> None:
    lay_out(home, f"{LAYOUTS['nvm'][0]}; {LAYOUTS['rustup and cargo'][0]}")
    found = search(home, "~/.nvm/versions/node/v20/bin ~/.cargo/bin", parts=("rust",))
    assert given(found, home) == set(LAYOUTS["rustup and cargo"][2].split())
    assert [entry for entry, _ in found.left] == [f"{home}/.nvm/versions/node/v20/bin"]
    assert "`node`" in found.left[0][1]


def test_asdf_gives_the_installs_of_the_parts_in_use(home: Path) -> None:
    lay_out(
        home, ".asdf/shims/x = x; .asdf/installs/nodejs/20/; .asdf/installs/python/3/; .asdf/installs/jq/1/"
    )
    found = given(search(home, "~/.asdf/shims", parts=("node",)), home)
    assert found == {".asdf/shims", ".asdf/installs/nodejs", ".asdf/installs/jq"}


def test_a_variable_names_another_folder_and_counts_only_where_it_is_the_persons(home: Path) -> None:
    lay_out(home, "elsewhere/rust/toolchains/; .cargo/bin/cargo = x; .rustup/toolchains/")
    assert "elsewhere/rust/toolchains" in given(
        search(home, "~/.cargo/bin", RUSTUP_HOME="~/elsewhere/rust"), home
    )
    for value in ("~", "~/..", "/", "/usr", "relative", "~/../workspace"):
        found = given(search(home, "~/.cargo/bin", RUSTUP_HOME=value), home)
        assert ".rustup/toolchains" in found, value
    (home.parent / "workspace" / "toolchains").mkdir()
    assert ".rustup/toolchains" in given(search(home, "~/.cargo/bin", RUSTUP_HOME="~/../workspace"), home)


def test_a_path_folder_in_the_workspace_may_point_to_a_known_manager_only(home: Path) -> None:
    lay_out(home, ".local/share/uv/python/cpython-3.12/bin/python3.12 = x; secret = #!/bin/sh")
    binaries = home.parent / "workspace" / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(home / ".local/share/uv/python/cpython-3.12/bin/python3.12")
    (binaries / "python3").symlink_to(home / "secret")
    (binaries / "tool").symlink_to(home / "secret")
    assert given(search(home, str(binaries)), home) == {".local/share/uv/python"}


DOUBTFUL = {
    # layout, PATH, given where no run wrote ~/a, given where one did
    "a virtual environment": (
        "a/bin/python -> ~/uv; a/bin/tool -> ~/mine; a/pyvenv.cfg = x; a/lib -> ~/priv; a/lib64/; priv/; mine = x",
        "~/a/bin",
        "a/bin a/lib64 a/pyvenv.cfg .local/share/uv/python",
        "a/bin a/lib64 a/pyvenv.cfg .local/share/uv/python",
    ),
    "a folder of a repository": ("a/.git/; a/bin/tool -> ~/mine; mine = x; a/lib/", "~/a/bin", "", ""),
    "a folder of the person": ("a/bin/tool -> ~/mine; mine = x", "~/a/bin", "mine", ""),
    "a script of the person": ("a/bin/tool = #!~/mine; mine = x", "~/a/bin", "mine", ""),
    "packages of another project": (
        "a/bin/tool -> ~/proj/node_modules/x/cli.js; proj/node_modules/x/cli.js = x",
        "~/a/bin",
        "proj/node_modules",
        "",
    ),
    "a link of the person that passes one of a command": (
        ".local/bin/tool -> ~/a/tool; a/tool -> ~/mine; mine = x",
        "~/.local/bin",
        "mine",
        "",
    ),
    "a link of the person to a script of a command": (
        ".local/bin/tool -> ~/a/tool; a/tool = #!~/mine; mine = x",
        "~/.local/bin",
        "a/tool mine",
        "a/tool",
    ),
    "a version of a manager": (
        ".pyenv/versions/3/bin/python = x; .pyenv/versions/4 -> ~/priv; priv/bin/python3 = x; priv/lib/",
        "~/.pyenv/versions/3/bin",
        ".pyenv/versions priv/bin priv/lib",
        ".pyenv/versions",
    ),
    "a part of a manager": (
        ".pyenv/bin/pyenv = x; .pyenv/shims -> ~/priv; .pyenv/versions/; priv/s = x",
        "~/.pyenv/bin",
        ".pyenv/bin .pyenv/versions .pyenv/shims",
        ".pyenv/bin .pyenv/versions",
    ),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_what_a_command_may_have_filled_leads_to_known_managers_only(name: str, home: Path) -> None:
    layout, path, trusted, doubtful = DOUBTFUL[name]
    layout = layout.replace("#!~", f"#!{home}")
    lay_out(
        home,
        f"uv -> ~/.local/share/uv/python/3/bin/python3; .local/share/uv/python/3/bin/python3 = x; {layout}",
    )
    tree = "~/.pyenv" if ".pyenv" in layout else "~/a"
    assert given(search(home, path), home) == set(trusted.split()), "the control: nobody wrote it"
    assert given(search(home, path, earlier=tree), home) == set(doubtful.split())


def test_a_conda_is_known_by_its_mark_where_it_lies_in_no_project(home: Path) -> None:
    lay_out(
        home,
        "c/conda-meta/; c/bin/python3 = x; p/.git/; p/env/conda-meta/; p/env/bin/python3 = x; p/env/lib/s = x",
    )
    lay_out(
        home,
        "v/bin/python -> ~/c/bin/python3; w/bin/python -> ~/p/env/bin/python3; v/pyvenv.cfg =; w/pyvenv.cfg =",
    )
    assert given(search(home, "~/v/bin"), home) == {"v/bin", "v/pyvenv.cfg", "c/bin", "c/conda-meta"}
    assert given(search(home, "~/w/bin"), home) == {"w/bin", "w/pyvenv.cfg"}


def test_the_commands_own_program_is_given_whatever_the_parts(home: Path) -> None:
    lay_out(home, LAYOUTS["pipx"][0])
    found = search(home, "~/.local/bin", parts=(), command="cow")
    assert given(found, home) == {".local/share/pipx/venvs/cow/bin/cow"}
    assert not search(home, "~/.local/bin", parts=()).found


def test_of_settings_a_copy_of_what_is_understood_is_given_and_the_rest_is_named(home: Path) -> None:
    lay_out(home, ".asdf/shims/x = x; dots/mise.toml = [env]\nGH_PAT = 'canary'\n[tools]\nnode = '20'")
    lay_out(home, ".tool-versions = node 20 # canary; .asdfrc = {}; .local/share/mise/shims/x = x")
    (home / ".config" / "mise").mkdir(parents=True)
    (home / ".config" / "mise" / "config.toml").symlink_to(home / "dots" / "mise.toml")
    (home / ".mise.toml").write_text("= no TOML")
    found = search(home, "~/.asdf/shims ~/.local/share/mise/shims")
    assert {(os.path.relpath(path, home), text) for path, text, _ in found.settings} == {
        (".tool-versions", "node 20\n"),
        ("dots/mise.toml", '[tools]\n"node" = "20"\n'),
    }
    assert dict(found.links)[f"{home}/.config/mise/config.toml"] == f"{home}/dots/mise.toml"
    assert not {".tool-versions", ".asdfrc", "dots/mise.toml"} & given(found, home), "no file itself"
    notes = "\n".join(found.notes)
    assert "canary" not in notes
    for part in (f"of {home}/.asdfrc ", "line 1", f"of {home}/.config/mise/config.toml ", "not env"):
        assert part in notes
    assert f"{home}/.mise.toml is not given" in notes


MANY = {
    "pyenv": (".pyenv/versions/{}/pip.conf", "~/.pyenv/bin", ".pyenv/versions", ".pyenv/bin"),
    "uv's tools": (".local/share/uv/tools/{}/pip.conf", "~/.local/bin", ".local/share/uv/tools", ""),
    "conda": ("conda/envs/{}/pip.conf", "~/conda/bin", "conda/envs", "conda/bin"),
    "asdf": (".asdf/installs/python/{}/pip.conf", "~/.asdf/bin", ".asdf/installs/python", ".asdf/bin"),
}
"""Whose → where a secret lies in each of many, PATH, what holds them all, and what holds none."""


@pytest.mark.parametrize("whose", MANY)
@pytest.mark.parametrize("why", ["more than are looked into", "not to be listed"])
def test_a_folder_whose_secrets_are_not_all_found_is_not_given(
    whose: str, why: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, path, holds, rest = MANY[whose]
    lay_out(home, ".pyenv/bin/x = x; conda/conda-meta/; conda/bin/python = x; .asdf/bin/x = x")
    lay_out(home, ".local/bin/x -> ~/.local/share/uv/tools/0/bin/x; .local/share/uv/tools/0/bin/x = x")
    lay_out(home, "".join(f"{secret.format(number)} = canary;" for number in range(4)))
    # The control: seen whole it is given, and each secret in it is hidden.
    found = search(home, path)
    assert {holds, rest} - {""} <= given(found, home)
    hidden = {os.path.relpath(path, home) for tool in found.found for path in tool.secrets}
    assert hidden >= {secret.format(number) for number in range(4)}
    many = home / secret.partition("/{}")[0]
    if why == "not to be listed":
        many.chmod(0o311)
    else:
        monkeypatch.setattr(toolchains.tables, "MOST_ENTRIES", 3)
    found = search(home, path)
    many.chmod(0o755)
    assert holds not in given(found, home)
    assert not rest or rest in given(found, home)
    assert any(f"{many} cannot be listed, or has more" in note for note in found.notes)


def test_a_version_that_is_chosen_is_handed_on_and_nothing_that_is_no_version(home: Path) -> None:
    lay_out(home, LAYOUTS["pyenv"][0])
    assert ("PYENV_VERSION", "3.12") in search(home, "~/.pyenv/shims", PYENV_VERSION="3.12").variables
    assert "PYENV_VERSION" not in dict(search(home, "~/.pyenv/shims", PYENV_VERSION="a b/$(x)").variables)


def test_a_folder_of_many_files_costs_no_more_than_its_bounds(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchains, "MOST_NAMES", 50)
    monkeypatch.setattr(toolchains, "MOST_READ", 10)
    read: list[str] = []
    monkeypatch.setattr(toolchains.firstline, "read", lambda path: read.append(path) or b"")
    folder = home / "bin"
    folder.mkdir()
    for number in range(200):
        (folder / f"tool{number:03}").touch()
    assert not search(home, "~/bin").found
    assert len(read) == 10


def test_no_more_ways_out_are_followed_than_the_bound_and_that_is_said(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(home, "".join(f"bin/t{number} -> ~/opt/t{number}; opt/t{number} = x;" for number in range(9)))
    monkeypatch.setattr(toolchains, "MOST_LEADS", 4)
    found = search(home, "~/bin")
    assert len(found.found) == 4
    assert any("more places than are followed" in note for note in found.notes)


def test_a_link_in_the_workspace_gives_no_file_that_its_manager_does_not(home: Path) -> None:
    lay_out(home, ".cargo/bin/cargo = x; .cargo/private = #!/bin/sh")
    binaries = home.parent / "workspace" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(home / ".cargo" / "private")
    assert given(search(home, str(binaries)), home) == {".cargo/bin"}


def test_managers_and_scripts_that_lead_in_circles_end(home: Path) -> None:
    chain = "".join(f"s/{number} = #!~/s/{number + 1};" for number in range(400))
    lay_out(home, f"{chain} bin/a -> ~/s/0; bin/b = #!~/bin/b; s/400 = #!~/s/0")
    lay_out(home, ".asdf/installs/nodejs/lts -> 20; .asdf/installs/nodejs/20/bin/node = x; .asdf/other/;")
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".local" / "bin" / "node").symlink_to(
        home / ".asdf" / "installs" / "nodejs" / "20" / "bin" / "node"
    )
    found = given(search(home, "~/bin ~/.local/bin", parts=("python",)), home)
    assert "s/0" in found
    assert len(found) < 40
    assert not [path for path in found if path.startswith(".asdf/installs")]


def test_a_link_into_another_path_folder_adds_nothing(home: Path) -> None:
    lay_out(home, "bin/a -> ~/other/b; other/b = #!/bin/sh")
    assert not search(home, "~/bin ~/other").found


def test_a_link_in_the_workspace_tells_of_no_other_link(home: Path) -> None:
    lay_out(home, "private -> /usr/bin/true")
    binaries = home.parent / "workspace" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(home / "private")
    assert not search(home, str(binaries)).links


def test_a_plain_path_is_not_searched(home: Path) -> None:
    assert search(home, "/usr/bin") == Tools()
