"""SHA-256 at the price of a launch.

Rule: the interpreter's own C module, not `hashlib`, which loads OpenSSL (a few milliseconds of a launch that
has few). The module was renamed in Python 3.12 (gh-99108); an interpreter that has neither name gets
`hashlib`.
"""

import sys

try:
    if sys.version_info >= (3, 12):
        from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]  # typeshed has no stub of it
    else:
        from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]  # typeshed has no stub of it
except ImportError:
    from hashlib import sha256

__all__ = ["sha256", "sha256_hex"]


def sha256_hex(content: bytes) -> str:
    """SHA-256 (FIPS 180-4) of `content` as 64 lower-case hex digits."""
    return str(sha256(content).hexdigest())
