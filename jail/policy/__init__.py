"""The policy as a value: read from TOML, every fault at once, never widened by what is absent or misspelt.

`value` is the value, `load` finds and reads files, `flags` adds what the command line says; `check`, `names`
and `limits` are the checks that both share, `paths` compares paths for this room and those above. `parse`,
with its slow imports, runs only when load's cache has no answer.
"""
