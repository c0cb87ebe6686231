"""The last warnings of a process: numbered, cut, and text whatever was logged."""

import logging
from collections.abc import Iterator

import pytest

from sparklog.broker.life.reporting.kept_warnings import WARNINGS_KEPT_MAX, WORDS_MAX, KeptWarnings

LOGGER = logging.getLogger("sparklog.a_room")


@pytest.fixture
def kept() -> Iterator[KeptWarnings]:
    kept = KeptWarnings()
    kept.begin()
    yield kept
    kept.end()


def test_warnings_and_errors_are_kept_with_their_place_and_time(kept: KeptWarnings) -> None:
    LOGGER.info("no warning")
    LOGGER.warning("disk %s is full", "/a")
    LOGGER.error("it failed")
    first, second = kept.after(0, 10)
    assert (first.number, first.level, first.logger, first.words) == (
        1, "WARNING", "sparklog.a_room", "disk /a is full",
    )  # fmt: skip
    assert (second.number, second.level) == (2, "ERROR")
    assert first.time_ms <= second.time_ms
    assert kept.last == 2


def test_an_exception_is_named_without_its_traceback(kept: KeptWarnings) -> None:
    try:
        raise OSError("no such disk")
    except OSError:
        LOGGER.exception("a write failed")
    assert [one.words for one in kept.after(0, 10)] == ["a write failed: OSError: no such disk"]


def test_who_follows_gets_what_is_new_and_the_newest_if_there_is_more(kept: KeptWarnings) -> None:
    for number in range(1, 6):
        LOGGER.warning("line %d", number)
    assert [one.number for one in kept.after(3, 10)] == [4, 5]
    assert [one.number for one in kept.after(0, 2)] == [4, 5]
    assert kept.after(0, 0) == kept.after(5, 10) == kept.after(0, -1) == []


def test_the_last_five_hundred_are_kept_and_long_ones_are_cut(kept: KeptWarnings) -> None:
    for _ in range(WARNINGS_KEPT_MAX + 3):
        LOGGER.warning("x" * 100_000)
    found = kept.after(0, 10_000)
    assert (len(found), found[0].number, kept.last) == (WARNINGS_KEPT_MAX, 4, WARNINGS_KEPT_MAX + 3)
    assert {len(one.words) for one in found} == {WORDS_MAX}


def test_names_of_files_that_are_no_unicode_become_text(kept: KeptWarnings) -> None:
    name = b"/logs/\xff".decode("utf-8", "surrogateescape")
    # only to this handler: processes of tests cannot send each other such a name in a captured log
    kept.handle(LOGGER.makeRecord("sparklog", logging.WARNING, "", 1, "cannot open %s", (name,), None))
    (found,) = kept.after(0, 10)
    assert found.words == "cannot open /logs/?"
    found.words.encode("utf-8")


def test_a_line_that_cannot_be_formatted_keeps_nobody_from_going_on(
    kept: KeptWarnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    kept.handle(LOGGER.makeRecord("sparklog", logging.WARNING, "", 1, "%d lines", ("no number",), None))
    LOGGER.warning("the next line")
    assert [one.words for one in kept.after(0, 10)] == ["the next line"]


def test_nothing_is_kept_after_the_end(kept: KeptWarnings) -> None:
    kept.end()
    LOGGER.warning("late")
    assert kept.after(0, 10) == []
