"""One module a command; a table of names; no logic."""
