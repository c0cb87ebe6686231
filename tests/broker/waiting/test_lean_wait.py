"""The one wait of a session's lean fetches, by their handler and a leader's real logs."""

import threading

import pytest

from sparklog.broker.handlers import lean_fetch
from sparklog.core.replication.session_slots import LeanPosition
from sparklog.model.errors import ErrorCode
from sparklog.model.parts import read_parts
from sparklog.wire.messages.data.lean_fetch import (
    LeanFetchRequest,
    LeanFetchResponse,
    packed_positions,
    unpacked_answers,
)
from tests.broker.waiting.test_session_partitions import (
    BATCH_BYTES,
    PARTITIONS,
    Follower,
    append,
    become,
    partition,
    waits,
)


class LeanFollower(Follower):
    """Opens its session by Fetch, and goes on in the lean form. Slots are the partitions' numbers."""

    is_allowed = True

    def lean(self, *moved, wait_max_ms=500):
        """Ask for what has ``moved``; which partitions the handler has read."""
        self.read.clear()
        request = LeanFetchRequest(
            session_id=self.session_id,
            session_epoch=self.epoch,
            broker_epoch=self.broker_epoch,
            max_wait_ms=wait_max_ms,
            positions=packed_positions(
                LeanPosition(number, 1, self.offsets[number], 1 if self.offsets[number] else -1, 0)
                for number in moved
            ),
        )
        self.epoch += 1
        call = self._call()
        call.reply = self._take_lean
        call.allows = lambda *_: self.is_allowed
        lean_fetch.handle(call, request)
        return [number for number, _ in self.read]

    def _take_lean(self, response, *, errors=()) -> None:
        if not isinstance(response, LeanFetchResponse) or response.error_code is not ErrorCode.none:
            self.answers.append(response.error_code)
            return
        records = read_parts(response.records)
        self.answers.append(
            {
                one.slot: (one.error_code, one.size_bytes, one.high_watermark)
                for one in unpacked_answers(response.answers, len(records))
            }
        )


@pytest.fixture
def leader(members):
    become(members[1])
    return members[1]


@pytest.fixture
def follower(leader, batch):
    """A follower at the end of all partitions, of which all but 0 rest; its lean fetch waits."""
    made = LeanFollower(leader)
    made.fetch(wait_max_ms=0)
    made.lean()
    append(leader, 0, batch())
    made.offsets[0] = 1
    made.lean(0)
    return made


def test_a_fetch_reads_what_has_moved_and_nothing_that_rests(follower) -> None:
    assert [number for number, _ in follower.read] == [0]


def test_request_after_request_is_answered_by_its_own_records(leader, follower, batch) -> None:
    for number in (3, 0, 2, 2):
        append(leader, number, batch())
        assert follower.answers[-1][number][:2] == (ErrorCode.none, 81)
        follower.offsets[number] += 1
        assert number in follower.lean(number)
    assert len(follower.answers) == 6


def test_a_token_of_an_earlier_request_does_not_answer_the_next(leader, follower, batch) -> None:
    """Partition 0 keeps the token of the first request, and changes while the second one reads."""
    append(leader, 3, batch())
    follower.offsets[3] = 1
    count = len(follower.answers)
    reads = partition(leader, 3).reads
    read = reads.read

    def read_after_a_change(request, **named):
        reads.read = read
        append(leader, 0, batch())
        return read(request, **named)

    reads.read = read_after_a_change
    follower.lean(3)
    assert len(follower.answers) == count + 1
    assert follower.answers[-1][0] == (ErrorCode.none, 81, 1)


def test_the_timer_of_an_earlier_request_leaves_the_next_one_its_time(leader, follower, batch, clock) -> None:
    clock.now_ms += 300
    append(leader, 0, batch())
    follower.offsets[0] = 2
    follower.lean(0)
    count = len(follower.answers)
    assert len(leader.timer.waiting) == 1
    clock.now_ms += 200
    leader.timer.fire()
    assert len(follower.answers) == count
    (waiting,) = leader.timer.waiting
    assert waiting.delay_ms == 300
    clock.now_ms += 300
    leader.timer.fire()
    assert follower.answers[count:] == [{0: (ErrorCode.none, 0, 2)}]
    assert leader.timer.waiting == []


def test_a_request_that_waits_for_less_than_the_timer_has_it_end_sooner(leader, follower, batch) -> None:
    append(leader, 0, batch())
    follower.offsets[0] = 2
    follower.lean(0, wait_max_ms=100)
    assert [waiting.delay_ms for waiting in leader.timer.waiting] == [100]


def test_when_its_time_is_up_a_fetch_reads_all(leader, follower, clock) -> None:
    follower.read.clear()
    clock.now_ms += 500
    leader.timer.fire()
    assert sorted(follower.read) == [(number, True) for number in range(PARTITIONS)]


def test_a_second_request_while_one_waits_has_that_one_answered_as_overtaken(follower) -> None:
    count = len(follower.answers)
    assert sorted(follower.lean()) == [*range(PARTITIONS)]
    assert follower.answers[count] is ErrorCode.invalid_fetch_session_epoch


def test_a_partition_waits_once_whatever_the_number_of_requests(leader, follower, batch) -> None:
    for end in range(2, 7):
        append(leader, 0, batch())
        follower.offsets[0] = end
        follower.lean(0)
    assert [waits(leader, number) for number in range(PARTITIONS)] == [1, 1, 1, 1]


def test_a_partition_that_the_session_forgets_has_no_wait_of_it(leader, follower, batch) -> None:
    append(leader, 3, batch())
    follower.offsets[3] = 1
    follower.fetch(3, forget=(0, 1))
    assert [waits(leader, number) for number in range(PARTITIONS)] == [0, 0, 1, 1]


def test_the_end_of_a_session_leaves_no_wait_behind(leader, follower) -> None:
    follower.epoch = -1
    follower.fetch(wait_max_ms=0)
    assert [waits(leader, number) for number in range(PARTITIONS)] == [0, 0, 0, 0]
    assert leader.parts.waits.fetches.lean == leader.parts.waits.fetch_sessions.by_token == {}


def test_a_fetch_that_outlives_its_session_leaves_no_wait_behind(leader, follower, batch, clock) -> None:
    follower.epoch = -1
    follower.fetch(wait_max_ms=0)
    append(leader, 0, batch())
    clock.now_ms += 500
    leader.timer.fire()
    assert [waits(leader, number) for number in range(PARTITIONS)] == [0, 0, 0, 0]
    assert leader.parts.waits.fetches.lean == {}


def test_a_partition_whose_leader_resigns_answers_with_the_reason(leader, follower) -> None:
    stopped = partition(leader, 2)
    stopped.stop("a test")
    stopped.log_guard.deliver()
    assert follower.answers[-1][2][0] is ErrorCode.not_leader_or_follower


def test_a_follower_that_loses_its_right_while_it_waits_gets_no_records(leader, follower, batch) -> None:
    follower.is_allowed = False
    append(leader, 0, batch())
    assert follower.answers[-1] is ErrorCode.cluster_authorization_failed


def test_no_record_is_overlooked_between_threads(leader, batch) -> None:
    """No timer fires, and the clock stands still: whatever a change fails to wake, waits for ever."""
    follower, answered = LeanFollower(leader), threading.Event()
    take = follower._take_lean

    def take_and_tell(response, **named) -> None:
        take(response, **named)
        answered.set()

    follower._take_lean = take_and_tell
    follower.fetch(wait_max_ms=0)

    def write(numbers) -> None:
        for number in numbers:
            append(leader, number, batch())

    spread = [0, 1, 0, 2, 0, 3, 1, 0, 2, 1, 3, 0]
    writers = [threading.Thread(target=write, args=(part * 40,)) for part in (spread, spread[::-1])]
    expected = {number: 2 * 40 * spread.count(number) for number in range(PARTITIONS)}
    for writer in writers:
        writer.start()
    moved: list[int] = []
    while follower.offsets != expected:
        answered.clear()
        follower.lean(*moved)
        assert answered.wait(60), f"{follower.offsets} of {expected}, and a fetch that nothing wakes"
        news = follower.answers[-1]
        moved = [number for number, (_, size_bytes, _) in news.items() if size_bytes]
        for number in moved:
            follower.offsets[number] += news[number][1] // BATCH_BYTES
    for writer in writers:
        writer.join()
