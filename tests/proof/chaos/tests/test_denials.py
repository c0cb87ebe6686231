"""What counts as a breach of a denial: writes that were acknowledged, records that were given."""

import pytest

from chaos.denials import SHOWN_MAX, Denial, breaches, refusals
from histories import Writer, read_history

DENIED = Denial("guest-1", frozenset({"plain"}), 10, 20)


@pytest.fixture
def written(tmp_path):
    """A history of one client, whose clock is set by hand; ``read()`` gives it."""

    class Written:
        now = 0

        def __init__(self):
            self.path = tmp_path / "history.jsonl"
            self.writer = Writer(self.path, clock=lambda: self.now)
            self.sent = 0

        def send(self, begun, done, *, process="guest-1/0", topic="plain", outcome="sent"):
            self.now, self.sent = begun, self.sent + 1
            value = f"{topic}/{self.sent}"
            op = self.writer.send(
                process, topic, 0, value, acks="all", session="s", seq=self.sent, idempotent=False
            )
            self.now = done
            told = {"sent": (), "failed": ("TOPIC_AUTHORIZATION_FAILED",), "unknown": ("no answer",)}
            getattr(self.writer, outcome)(process, op, *told[outcome])

        def poll(self, begun, done, *records, process="guest-1/0"):
            self.now = begun
            op = self.writer.poll(process, "plain", 0)
            self.now = done
            self.writer.polled(process, "plain", 0, 0, list(records), op=op)

        def read(self):
            self.writer.close()
            return read_history(self.path)

    return Written()


def test_an_acknowledged_write_and_records_read_within_a_denial_are_breaches(written):
    written.send(11, 12)
    written.poll(13, 14, (0, "a"), (1, "b"))
    first, second = breaches(written.read(), [DENIED])
    assert "guest-1/0 may not write to plain, and plain/1 was acknowledged" in first
    assert "guest-1/0 may not read plain, and was given 2 of plain/0" in second


def test_what_is_half_outside_may_have_been_allowed(written):
    written.send(9, 12)
    written.poll(13, 20, (0, "a"))
    assert breaches(written.read(), [DENIED]) == []


def test_others_other_topics_and_empty_answers_are_no_breaches(written):
    written.send(11, 12, process="guest-10/0")
    written.send(13, 14, topic="moved")
    written.poll(15, 16)
    assert breaches(written.read(), [DENIED]) == []


def test_refusals_are_counted_and_answers_that_nobody_knows_are_none(written):
    written.send(11, 12, outcome="failed")
    written.send(13, 14, outcome="unknown")
    written.send(21, 22, outcome="failed")
    history = written.read()
    assert breaches(history, [DENIED]) == []
    assert refusals(history, [DENIED]) == 1


def test_a_cluster_that_denies_nothing_is_told_in_few_lines(written):
    for number in range(SHOWN_MAX + 3):
        written.send(11 + number, 11 + number)
    *_, last = found = breaches(written.read(), [Denial("guest-1", frozenset({"plain"}), 0)])
    assert (len(found), last) == (SHOWN_MAX + 1, "guest-1: 3 more that were denied")
