import hashlib

from hypothesis import given
from hypothesis import strategies as st

from jail.kernel.digest import sha256_hex


@given(st.binary())
def test_it_is_sha256(content: bytes) -> None:
    assert sha256_hex(content) == hashlib.sha256(content).hexdigest()
