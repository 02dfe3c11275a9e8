"""Answers are recognised in what comes from the terminal, cut anywhere, with keys in between; and none is waited for in vain."""

import pytest

from jail.launch.answers import ANSWER_WAIT, GIVEN_UP, OPEN_LIMIT, Answers
from jail.launch.escapes import Filter

QUESTIONS = {
    "where the cursor is": (b"\x1b[6n", b"\x1b[24;80R"),
    "how it does": (b"\x1b[5n", b"\x1b[0n"),
    "what it is": (b"\x1b[c", b"\x1b[?62;4c"),
    "what it is, second": (b"\x1b[>c", b"\x1b[>1;95;0c"),
    "its name": (b"\x1b[>q", b"\x1bP>|xterm(390)\x1b\\"),
    "its background": (b"\x1b]11;?\x07", b"\x1b]11;rgb:0000/0000/0000\x07"),
    "its background, ended by ST": (b"\x1b]11;?\x1b\\", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
    "a mode": (b"\x1b[?2026$p", b"\x1b[?2026;2$y"),
    "the keyboard": (b"\x1b[?u", b"\x1b[?0u"),
    "its size": (b"\x1b[18t", b"\x1b[8;24;80t"),
    "a setting": (b"\x1bP$qm\x1b\\", b"\x1bP1$r0m\x1b\\"),
}


def after(*questions: bytes) -> Answers:
    shown = Filter()
    for question in questions:
        assert shown.feed(question) == question
    answers = Answers()
    answers.asked(shown.asked, 100.0)
    return answers


@pytest.mark.parametrize("size", [1, 2, 5, 99])
@pytest.mark.parametrize("what", QUESTIONS)
def test_an_answer_ends_the_waiting_and_every_key_passes(what: str, size: int) -> None:
    question, answer = QUESTIONS[what]
    answers = after(question)
    assert 0 < answers.wait(100.0) <= ANSWER_WAIT
    typed = b"ls\r\x1b[A\x1b[1;5C\x1b[<0;3;4M\x1b[97;5u\x1b" + answer
    for at in range(0, len(typed), size):
        assert answers.wait(100.0)
        assert answers.feed(typed[at : at + size]) == typed[at : at + size]
    assert answers.wait(100.0) == 0
    assert answers.finish() == b""


def test_an_answer_settles_the_questions_before_it_that_the_terminal_does_not_know() -> None:
    answers = after(b"\x1b[?u", b"\x1b]11;?\x07", b"\x1b[c", b"\x1b[6n")
    answers.feed(b"\x1b[?62c")
    assert answers.wait(100.0)
    answers.feed(b"\x1b[1;1R")
    assert answers.wait(100.0) == 0


def test_nothing_is_waited_for_that_was_asked_long_ago_or_never() -> None:
    answers = after(b"\x1b[6n")
    assert answers.wait(100.0 + ANSWER_WAIT) == 0
    assert Answers().wait(100.0) == 0


def test_no_more_questions_are_open_than_are_remembered_and_what_nothing_answers_makes_room() -> None:
    answers = Answers()
    assert answers.room(OPEN_LIMIT, 1.0)
    assert not answers.room(OPEN_LIMIT + 1, 1.0)
    answers.asked(["n"] * OPEN_LIMIT, 1.0)
    assert not answers.room(1, 1.0)
    assert answers.room(1, 1.1 + GIVEN_UP)
    answers.feed(b"\x1b[1;1R")
    assert answers.room(0, 1.0)


def test_each_of_many_answers_is_waited_for_and_each_gives_the_next_its_time() -> None:
    answers, now = Answers(), 1.0
    answers.asked(["n"] * OPEN_LIMIT, now)
    answers.feed(b"\x1b]11;" + b"x" * 100_000 + b"\x07")
    for _ in range(OPEN_LIMIT):
        assert answers.wait(now)
        answers.feed(b"\x1b[1;1R")
        now += ANSWER_WAIT
    assert answers.wait(now) == 0
