"""Starts that fail in a row are tried less and less often, and are reported once as a crash loop."""

from sparklog_runtime.supervision.start_history import STABLE_S, WITHOUT_A_WORD, StartHistory

LOCKED, FULL = "the directory is locked by process 1", "the disk is full"


def test_a_broker_that_served_for_a_while_is_started_again_at_once():
    history = StartHistory()
    history.ended(None, LOCKED)
    assert history.ended(STABLE_S, "it was killed") is None
    assert history.pause_s() == 0.0
    assert (history.barren, history.short, history.last_reason) == (0, 0, "")


def test_pauses_grow_to_fifteen_seconds_and_in_a_crash_loop_to_five_minutes():
    history, pauses = StartHistory(), []
    for _ in range(14):
        history.ended(None, LOCKED)
        pauses.append(history.pause_s())
    assert pauses[:4] == [0.5, 1.0, 2.0, 4.0]
    assert pauses[4:10] == [8.0, 16.0, 32.0, 64.0, 128.0, 256.0]
    assert pauses[10:] == [300.0] * 4


def test_the_fifth_start_that_did_not_serve_is_reported_with_two_reasons():
    history = StartHistory()
    said = [history.ended(None, LOCKED), *(history.ended(2.0, FULL) for _ in range(6))]
    assert [one is not None for one in said] == [False] * 4 + [True] + [False] * 2
    assert said[4] == (
        f"5 starts in a row did not serve for 20 s (first: {LOCKED}; last: {FULL}); it is started again, "
        "after 5 minutes at most"
    )


def test_one_reason_of_all_starts_is_named_once_and_a_silent_end_has_words_too():
    history = StartHistory()
    said = [history.ended(None, "") for _ in range(5)]
    assert f"(each time: {WITHOUT_A_WORD})" in said[4]


def test_starts_without_zookeeper_are_no_crash_loop():
    history = StartHistory()
    assert [history.ended(None, "ZooKeeper is away", counts=False) for _ in range(100)] == [None] * 100
    assert (history.barren, history.short, history.pause_s()) == (0, 0, 15.0)
