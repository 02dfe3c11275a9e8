"""The attacks of `jail doctor --attack`: programs that a run shows from inside what its walls hold.

Rule: these modules are sent into the jail as text, since jail's own code is never visible there; so they
import the standard library and one another, nothing of jail, and run on Python 3.10 or later. Outside only
their table is read.
"""
