"""The ledger: an append-only, hash-chained record of one session, and the folder in which it lies.

Rule of the room: `place`, `entries`, `chain`, `heads` and `writer` are on the launch path and import nothing
heavy; `lines` and `reader` are for afterwards and meet bytes that anyone may have written.
"""
