"""Who installs toolchains in a home folder, and what of each is given: one table.

Rule: an allow-list. Of a folder whose layout is known, the parts that programs need are named and nothing
else is given; credentials that lie between them are named too, so that they are absent and the plan says so.
No versions are listed: `*` stands for any name. Imported only where PATH leads out of the system's folders.
"""

from jail.light import Final, NamedTuple


class Manager(NamedTuple):
    """One manager: lists are words in one string, paths are relative to its root folder.

    `part` is a name in TOOLCHAINS, "" for one that serves several; `variables` name the root in the person's
    environment, `folders` are its usual places in the home folder; of both the first that is there counts.
    `given` read-only (`.` is all of it), `secrets` absent; `follow`: links whose ends are given too; `files`
    of the home folder, of which settings.py gives what it understands; `sets`: the variable that names the
    root inside; `choices`: variables that select a version; `commands`: names in PATH that mean that it is in
    use; `needs`: other managers.
    """

    name: str
    part: str
    variables: str
    folders: str
    given: str
    secrets: str = ""
    follow: str = ""
    files: str = ""
    sets: str = ""
    choices: str = ""
    commands: str = ""
    needs: str = ""


_ENV_SHIMS: Final = "bin libexec shims plugins versions version"
"""What pyenv and its descendants (rbenv, goenv, jenv) need to start what a shim names."""
_INSTALLS_SECRETS: Final = (
    "plugins/*/.git installs/node/*/etc installs/nodejs/*/etc installs/python/*/pip.conf installs/ruby/*/etc "
    "installs/maven/*/conf/settings.xml"
)
"""Of asdf and mise, whose plugins name node either way."""

MANAGERS: Final = (
    Manager(
        "pyenv",
        "python",
        "PYENV_ROOT",
        ".pyenv",
        f"{_ENV_SHIMS} pyenv.d",
        "versions/*/pip.conf versions/*/envs/*/pip.conf versions/*/etc plugins/*/.git .netrc .pypirc",
        follow="versions/*",
        sets="PYENV_ROOT",
        choices="PYENV_VERSION",
    ),
    Manager(
        "uv's Pythons",
        "python",
        "UV_PYTHON_INSTALL_DIR",
        ".local/share/uv/python",
        ".",
        "*/pip.conf",
        sets="UV_PYTHON_INSTALL_DIR",
        commands="uv uvx",
    ),
    Manager(
        "uv's tools",
        "python",
        "UV_TOOL_DIR",
        ".local/share/uv/tools",
        ".",
        "*/uv-receipt.toml */pip.conf",
        follow="*/bin/python",
        sets="UV_TOOL_DIR",
    ),
    Manager(
        "pipx",
        "python",
        "PIPX_HOME",
        ".local/share/pipx .local/pipx",
        "venvs shared py",
        "venvs/*/pipx_metadata.json venvs/*/pip.conf shared/pip.conf",
        follow="venvs/*/bin/python",
    ),
    Manager("rye", "python", "RYE_HOME", ".rye", "shims py self tools uv", "credentials config.toml"),
    Manager(
        "nvm",
        "node",
        "NVM_DIR",
        ".nvm .config/nvm",
        "versions alias nvm.sh nvm-exec bash_completion",
        "versions/node/*/etc .npmrc",
        sets="NVM_DIR",
    ),
    Manager(
        "fnm",
        "node",
        "FNM_DIR",
        ".local/share/fnm .fnm",
        "node-versions aliases fnm",
        "node-versions/*/installation/etc .npmrc",
        sets="FNM_DIR",
    ),
    Manager(
        "volta",
        "node",
        "VOLTA_HOME",
        ".volta",
        "bin tools layout.*",
        "tools/image/node/*/etc tools/user/.npmrc hooks.json .npmrc",
        sets="VOLTA_HOME",
        commands="volta",
    ),
    Manager("n", "node", "N_PREFIX", "n .n", "bin lib include share n", "etc n/versions/node/*/etc"),
    Manager("pnpm", "node", "PNPM_HOME", ".local/share/pnpm", "bin global nodejs .tools", ".npmrc"),
    Manager("bun", "node", "BUN_INSTALL", ".bun", "bin install/global", "bunfig.toml install/global/.npmrc"),
    Manager("deno", "node", "DENO_INSTALL_ROOT", ".deno", "bin", ""),
    Manager(
        "rustup",
        "rust",
        "RUSTUP_HOME",
        ".rustup",
        "toolchains settings.toml",
        "",
        follow="toolchains/*",
        sets="RUSTUP_HOME",
        choices="RUSTUP_TOOLCHAIN",
        commands="rustup",
    ),
    Manager(
        "cargo",
        "rust",
        "CARGO_HOME",
        ".cargo",
        "bin env",
        "credentials credentials.toml config config.toml",
        needs="rustup",
    ),
    Manager("go install", "go", "GOPATH", "go", "bin", ""),
    Manager("golang.org/dl", "go", "", "sdk", "go*", ""),
    Manager("goenv", "go", "GOENV_ROOT", ".goenv", _ENV_SHIMS, sets="GOENV_ROOT", choices="GOENV_VERSION"),
    Manager(
        "sdkman",
        "java",
        "SDKMAN_DIR",
        ".sdkman",
        "candidates bin src libexec var/platform",
        "candidates/maven/*/conf/settings.xml candidates/gradle/*/init.d "
        "candidates/gradle/*/gradle.properties etc/config",
        sets="SDKMAN_DIR",
    ),
    Manager(
        "jenv",
        "java",
        "JENV_ROOT",
        ".jenv",
        f"{_ENV_SHIMS} available-plugins",
        "",
        follow="versions/*",
        sets="JENV_ROOT",
        choices="JENV_VERSION",
    ),
    Manager(
        "rbenv",
        "ruby",
        "RBENV_ROOT",
        ".rbenv",
        f"{_ENV_SHIMS} rbenv.d",
        "versions/*/etc plugins/*/.git",
        follow="versions/*",
        sets="RBENV_ROOT",
        choices="RBENV_VERSION",
    ),
    Manager(
        "rvm",
        "ruby",
        "rvm_path",
        ".rvm",
        "bin scripts rubies gems wrappers environments lib VERSION RELEASE",
        "user rubies/*/etc",
        sets="rvm_path",
    ),
    Manager("chruby", "ruby", "", ".rubies", ".", "*/etc"),
    Manager("gem", "ruby", "", ".gem .local/share/gem", "ruby", "credentials"),
    Manager(
        "asdf",
        "",
        "ASDF_DATA_DIR ASDF_DIR",
        ".asdf",
        "bin lib libexec shims plugins defaults asdf.sh installs/*",
        _INSTALLS_SECRETS,
        follow="installs/*/*",
        files=".tool-versions .asdfrc",
        sets="ASDF_DATA_DIR",
    ),
    Manager(
        "mise",
        "",
        "MISE_DATA_DIR",
        ".local/share/mise",
        "bin shims plugins installs/*",
        _INSTALLS_SECRETS,
        follow="installs/*/*",
        files=".config/mise/config.toml .mise.toml .tool-versions",
        sets="MISE_DATA_DIR",
    ),
    Manager(
        "homebrew",
        "",
        "HOMEBREW_PREFIX",
        "",
        "bin sbin Cellar opt lib libexec include share etc/ca-certificates etc/openssl@3",
        "",
    ),
)

PLUGINS: Final = {
    "python": "python uv pipx poetry",
    "node": "node nodejs bun deno pnpm yarn npm",
    "rust": "rust cargo-binstall",
    "go": "go golang",
    "java": "java maven gradle kotlin scala sbt ant groovy leiningen clojure",
    "ruby": "ruby",
    "cc": "gcc clang llvm cmake ninja zig make",
}
"""Part → names beneath `installs` of asdf and mise that belong to it; other names belong to none and are
given.
"""


class Shape(NamedTuple):
    """A folder known by what is in it (`marks`, all of them), wherever it lies; else as Manager."""

    name: str
    part: str
    marks: str
    given: str
    secrets: str = ""


PREFIX: Final = "bin sbin lib lib64 libexec share include"
"""The parts of an installation prefix (Filesystem Hierarchy Standard, 4.11)."""

SHAPES: Final = (
    Shape(
        "conda",
        "python",
        "conda-meta",
        f"{PREFIX} condabin shell ssl compiler_compat conda-meta envs *-conda-linux-gnu etc/conda etc/fonts "
        "etc/profile.d",
        ".condarc condarc pip.conf conda-meta/state envs/*/.condarc envs/*/pip.conf envs/*/conda-meta/state "
        "etc/conda/activate.d/env_vars.sh envs/*/etc/conda/activate.d/env_vars.sh envs/*/etc/pip.conf",
    ),
    Shape(
        "a virtual environment",
        "python",
        "pyvenv.cfg",
        "bin lib lib64 include share pyvenv.cfg",
        "pip.conf",
    ),
    Shape("Python", "python", "bin/python3 lib", PREFIX, "pip.conf etc"),
    Shape("Node", "node", "bin/node include/node", PREFIX, "etc"),
    Shape("Go", "go", "bin/go VERSION src", "bin pkg src lib misc api test VERSION go.env"),
    Shape(
        "a JDK",
        "java",
        "bin/java release",
        "bin lib conf jmods include legal man jre release",
        "conf/management/jmxremote.password lib/management/jmxremote.password "
        "jre/lib/management/jmxremote.password",
    ),
    Shape("Maven", "java", "bin/mvn boot", "bin boot lib conf/logging", "conf/settings.xml"),
    Shape("Gradle", "java", "bin/gradle lib", "bin lib", "init.d gradle.properties"),
    Shape("Ruby", "ruby", "bin/ruby lib/ruby", PREFIX, "etc"),
    Shape("Rust", "rust", "bin/rustc lib/rustlib", PREFIX),
    Shape(
        "GCC",
        "cc",
        "bin lib/gcc",
        f"{PREFIX} *-gnu *-musl *-eabi *-eabihf *-gnueabi *-gnueabihf *-elf *-mingw32",
    ),
    Shape("LLVM", "cc", "bin lib/clang", PREFIX),
    Shape("CMake", "cc", "bin/cmake share", PREFIX),
)

POINTERS: Final = "JAVA_HOME GOROOT GEM_HOME GEM_PATH MY_RUBY_HOME M2_HOME MAVEN_HOME GRADLE_HOME".split()
"""Variables that are handed on where all that they name is given."""
