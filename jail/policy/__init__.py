"""The policy as a value: read from TOML, every fault at once, never widened by what is absent or misspelt.

A launch needs five modules: `value` is the value, `load` keeps what was made of the files, `sources` says
which files take part, `paths` compares paths and `amounts` reads and shows sizes and durations, for this room
and those above. The others are for a run whose policy is not kept, for options, and for `jail policy`:

    parse, shape            one file, judged alone
    draft, compose, narrow  from files to one policy, each value with its origin
    flags                   what the command line adds
    check, names, limits    what a file and the command line are judged by
    text, schema            a policy, and what may stand in one, as text
"""
