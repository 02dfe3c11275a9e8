"""The policy as a value: read from TOML, every fault at once, never widened by what is absent or misspelt.

A launch needs four modules: `value` is the value, `load` keeps what was made of the files, `sources` says
which files take part, `paths` compares paths for this room and those above. The other twelve run when the
cache has no answer, or for an option or a command that asks:

    parse, shape            one file, judged alone
    draft, compose, narrow  from files to one policy, each value with its origin
    flags                   what the command line adds
    check, names, limits    what files and command line share of the checks; `amounts` reads and shows sizes
    text, schema            for `jail policy`
"""
