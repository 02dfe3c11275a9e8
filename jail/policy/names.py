"""Environment names: which may be passed on from the caller, and which only set by a written value.

Rule: the environment inside is an allow-list. A name that makes some program load or run what its value says
may be `set`, where the value stands in the policy for everyone to read and is part of its digest, but not
passed: what the caller's shell happens to hold was chosen by nobody. A pattern is refused when it would reach
such a name or a well-known secret; a secret may be passed by its full name, since then a person has asked for
that one.
"""

from jail.light import Final

JAIL_SETS: Final = ("HOME", "USER", "LOGNAME", "SHELL", "PATH")
"""Always set by jail itself, from the facts of the run."""

CHANGES_WHAT_RUNS: Final = {
    "the dynamic loader and libc load code from where it says (ld.so(8))": """
        LD_* GLIBC_TUNABLES GCONV_PATH
    """.split(),
    "shells run what it says when they start, prompt or trace (bash(1))": """
        BASH_ENV ENV ZDOTDIR SHELLOPTS BASHOPTS PROMPT_COMMAND PS4 BASH_LOADABLES_PATH
    """.split(),
    "Python imports from where it says": """
        PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONBREAKPOINT PYTHONWARNINGS PYTHONUSERBASE
        PYTHONPLATLIBDIR PYTHONPYCACHEPREFIX PYTHONEXECUTABLE PYTEST_ADDOPTS PYTEST_PLUGINS
    """.split(),
    "node loads modules that it names": """
        NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE BUN_OPTIONS
    """.split(),
    "npm takes its settings from it: shells, scripts, registries and tokens": """
        npm_config_* NPM_CONFIG_*
    """.split(),
    "Perl loads modules from where it says": "PERL5LIB PERLLIB PERL5OPT PERL5DB".split(),
    "Ruby loads code from where it says": "RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_GEMFILE".split(),
    "Java loads classes and agents that it names": """
        JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS
    """.split(),
    "git runs the program that it names": """
        GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_EXEC_PATH
        GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_TEMPLATE_DIR
    """.split(),
    "git takes settings from it, and settings name programs": "GIT_CONFIG GIT_CONFIG_*".split(),
    "git works on the repository that it names, not on the one it stands in": """
        GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY
        GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE
    """.split(),
    "programs run what it names to edit, page or ask": """
        EDITOR VISUAL PAGER MANPAGER BROWSER SSH_ASKPASS SUDO_ASKPASS LESSOPEN LESSCLOSE
    """.split(),
    "editors run what it says when they start": "VIMINIT EXINIT EMACSLOADPATH".split(),
    "builds run the program or the flags that it names": """
        MAKEFLAGS MFLAGS GNUMAKEFLAGS MAKEFILES GOFLAGS RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER
        CARGO_BUILD_* CARGO_TARGET_* GCC_EXEC_PREFIX COMPILER_PATH
    """.split(),
    "OpenSSL loads engines and settings that it names": """
        OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES
    """.split(),
    ".NET loads code that it names": "DOTNET_STARTUP_HOOKS CORECLR_* COR_*".split(),
    "the interpreter runs what it says when it starts": """
        LUA_INIT LUA_INIT_* R_PROFILE R_PROFILE_USER R_ENVIRON R_ENVIRON_USER PHPRC PHP_INI_SCAN_DIR
        TCLLIBPATH ERL_FLAGS ERL_AFLAGS ERL_ZFLAGS
    """.split(),
    "toolkits load plugins that it names": "GTK_MODULES GIO_EXTRA_MODULES QT_PLUGIN_PATH".split(),
}
"""Why a name may only be `set` → the names."""

SECRETS: Final = """
    AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AZURE_CLIENT_SECRET GOOGLE_APPLICATION_CREDENTIALS
    KUBECONFIG ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY MISTRAL_API_KEY HF_TOKEN
    CLAUDE_CODE_OAUTH_TOKEN GITHUB_TOKEN GH_TOKEN GITLAB_TOKEN CI_JOB_TOKEN ACTIONS_RUNTIME_TOKEN
    BITBUCKET_TOKEN NPM_TOKEN NODE_AUTH_TOKEN TWINE_PASSWORD UV_PUBLISH_TOKEN PIP_INDEX_URL
    CARGO_REGISTRY_TOKEN SSH_AUTH_SOCK GPG_AGENT_INFO PGPASSWORD MYSQL_PWD DATABASE_URL REDIS_URL
    DOCKER_AUTH_CONFIG VAULT_TOKEN SLACK_TOKEN SLACK_WEBHOOK_URL STRIPE_SECRET_KEY SENTRY_AUTH_TOKEN
    DISCORD_TOKEN TELEGRAM_BOT_TOKEN HTTP_PROXY HTTPS_PROXY http_proxy https_proxy
    DBUS_SESSION_BUS_ADDRESS
""".split()
"""Names that commonly hold a credential or lead to one; no pattern may reach them."""

_SHORTEST_PREFIX: Final = 3
"""Letters before the `*`: `LC_*` is a family of names, `A*` is half of an environment."""
_LONGEST_VALUE: Final = 1 << 17
"""Bytes of NAME=VALUE and its NUL: MAX_ARG_STRLEN of linux/binfmts.h; above it execve(2) gives E2BIG."""


def pass_complaint(pattern: str) -> tuple[str, str] | None:
    """Why `pattern` (a name, or how names begin and a `*`) may not be passed, and what to do; else None."""
    stem = pattern.removesuffix("*")
    if pattern == "*":
        return (
            "`*` would pass every secret of the caller's environment",
            "name the variables that the command needs",
        )
    if not is_name(stem):
        hint = "write letters, digits and `_`, not beginning with a digit; a `*` may stand at the end only"
        return f"`{pattern}` is not an environment name", hint
    if pattern in JAIL_SETS:
        return f"`{pattern}` is always set by jail itself", "leave it out"
    if stem != pattern:
        return _wildcard_complaint(pattern, stem)
    for reason, names in CHANGES_WHAT_RUNS.items():
        if any(_overlap(pattern, name) for name in names):
            return (
                f"`{pattern}` may not come from the caller: {reason}",
                f"set {pattern} to a value instead, or leave it out",
            )
    return None


def _wildcard_complaint(pattern: str, stem: str) -> tuple[str, str] | None:
    if len(stem) < _SHORTEST_PREFIX:
        return f"`{pattern}` is too broad", "name the variables that the command needs"
    running = [name for names in CHANGES_WHAT_RUNS.values() for name in names]
    for kind, names in (
        ("sets what runs", running),
        ("is set by jail", JAIL_SETS),
        ("commonly holds a secret", SECRETS),
    ):
        for name in names:
            if _overlap(pattern, name):
                return (
                    f"`{pattern}` reaches `{name}`, which {kind}",
                    "name the variables that the command needs",
                )
    return None


def set_complaint(name: str, value: str) -> tuple[str, str] | None:
    """Why `name` may not be set to `value`, and what to do; else None. An empty value is one too."""
    if not is_name(name):
        return (
            f"`{name}` is not an environment name",
            "write letters, digits and `_`, not beginning with a digit",
        )
    if name in JAIL_SETS:
        return f"`{name}` is always set by jail itself", "leave it out"
    if "\0" in value:
        return f"the value of `{name}` holds a NUL character", "remove it: no environment can carry one"
    if len(name) + len(value.encode("utf-8", "surrogateescape")) + 2 > _LONGEST_VALUE:
        return f"the value of `{name}` is longer than execve(2) carries (128 KiB)", "put it in a file"
    return None


def is_name(text: str) -> bool:
    """Whether `text` is a name (POSIX XBD, Name): ASCII letters, digits, `_`, not beginning with a digit."""
    return text.isascii() and text.isidentifier()


def _overlap(one: str, other: str) -> bool:
    """Whether a variable exists that both patterns name."""
    first, second = one.removesuffix("*"), other.removesuffix("*")
    if one == first and other == second:
        return one == other
    if one == first:
        return one.startswith(second)
    if other == second:
        return other.startswith(first)
    return first.startswith(second) or second.startswith(first)
