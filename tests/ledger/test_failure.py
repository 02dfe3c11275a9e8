import errno

import pytest

from jail.ledger.failure import failure


@pytest.mark.parametrize(
    ("number", "where", "to_do"),
    [
        (errno.ENOSPC, "/s/ledger.jsonl (ENOSPC)", "free space"),
        (errno.EDQUOT, "/s/ledger.jsonl (EDQUOT)", "quota"),
        (errno.EFBIG, "/s/ledger.jsonl (EFBIG)", "ulimit -f"),
        (errno.EROFS, "/s/ledger.jsonl (EROFS)", "XDG_STATE_HOME"),
        (errno.ELOOP, "/s/ledger.jsonl (ELOOP)", "symbolic link"),
        (errno.EXDEV, "/s/ledger.jsonl (EXDEV)", "look at this path"),
    ],
)
def test_a_refusal_says_what_where_and_what_to_do(number: int, where: str, to_do: str) -> None:
    error = failure("write to the ledger", "/s/ledger.jsonl", OSError(number, "text of nobody"))
    assert error.message.startswith("cannot write to the ledger: ")
    assert error.where == where
    assert to_do in error.hint


def test_an_error_without_a_number_is_still_an_answer() -> None:
    assert failure("read", "/x", OSError("odd")).where == "/x (0)"
