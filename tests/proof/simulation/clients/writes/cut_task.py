"""One task of a batch read: it learns the cut of its execution, and reads its partition to there.

Agreed? -> no: high watermarks of all -> what is open and was ended, of all -> agreed! -> fetches
   +------------------------------- yes ------------------------------------------------^

The questions, and what is hidden, are the shipped code's.
"""

from collections.abc import Generator, Mapping
from typing import Any, Final

from simulation.clients.client import Workplace
from simulation.clients.transactions.script import Ask, GaveUpError, Script, Wait
from simulation.clients.writes.asking import ask_coordinator
from simulation.clients.writes.leaders import ANSWERED, LeadersClient
from simulation.invariants.atomic_writes.cuts import CutRules, Execution, Read
from simulation.truth import Entry, entry_of
from sparklog.client.fetched import Fetched, FetchTerms, fetch_request, fetched_of
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.client.offsets import CONSUMER, offsets_request, read_offsets
from sparklog.client.transactions import cut_rounds
from sparklog.client.transactions.cut import Answer, Cut, PartitionCut
from sparklog.client.transactions.cut_rounds import Agreed, HighWatermarks, Question, Visibilities
from sparklog.client.transactions.cutting import read_visibility, visibility_request
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.fetch import FetchPartitionData
from sparklog.wire.messages.data.list_offsets import LATEST_TIMESTAMP, ListOffsetsRequest
from sparklog.wire.messages.writes.agree import AgreeRequest
from sparklog.wire.messages.writes.describe_visibility import DescribeVisibilityRequest

BYTES: Final = (200, 1_000, 1 << 20)
"""How much a task asks for at a time."""

TURN_MS: Final = (0.0, 0.0, 50.0, 500.0)
"""How long it is from leader to leader, at most."""

ANSWERED_OR_TOO_LATE: Final = ANSWERED | {ErrorCode.offset_out_of_range}


class CutTask(LeadersClient):
    """``number`` is the attempt's. ``has_read`` says whether it was successful."""

    def __init__(
        self, place: Workplace, execution: Execution, where: TopicPartition, number: int, rules: CutRules
    ) -> None:
        self.has_read = False
        self.leaders = {}
        self._execution = execution
        self._where = where
        self._rules = rules
        super().__init__(place, execution.name, f"{where.topic}-{where.partition}.{number}")
        self.turn_ms = self._draw.choice(TURN_MS)

    @property
    def is_under_way(self) -> bool:
        return self.process.is_alive and not self.has_ended

    def live(self) -> Script:
        try:
            cut = yield from self._cut()
            self._rules.on_cut(self._execution, cut)
            part = cut.of(self._where)
            assert part is not None, f"{self._where} was there when the execution began"
            yield from self._read(part)
            self.has_read = True
        except GaveUpError:
            self.tell("gives up")

    # ---- the cut -------------------------------------------------------------------------------------------

    def on_answer(self, where: TopicPartition, leader_epoch: int) -> None:
        self._rules.on_answer(self._execution, where, leader_epoch)

    def _cut(self) -> Generator[Ask | Wait, Any, Cut]:
        conversation = cut_rounds.agreed(lambda: self._execution.partitions)
        answer: object = None
        while True:
            try:
                question = conversation.send(answer)
            except StopIteration as end:
                cut: Cut = end.value
                return cut
            answer = yield from self._answer(question)

    def _answer(self, question: Question) -> Generator[Ask | Wait, Any, object]:
        match question:
            case Agreed(value):
                return (yield from self._agreed(value))
            case HighWatermarks(wanted):
                found = yield from self.ask_leaders(wanted, _ends_request, read_offsets)
                return {where: one.offset for where, one in found.items()}
            case Visibilities(since, is_last):
                return (yield from self._visibilities(since, is_last=is_last))

    def _agreed(self, value: bytes | None) -> Generator[Ask | Wait, Any, bytes | None]:
        request = AgreeRequest(name=self.name, value=value)
        response = yield from ask_coordinator(self, self.name, request, until_us=self.patience_until_us())
        agreed = None if response.value is None else bytes(response.value)
        if value is not None and agreed != value:
            self._place.witness.marks.reach("a cut gave way to an earlier one")
        return agreed

    def _visibilities(
        self, since: Mapping[TopicPartition, int], *, is_last: bool
    ) -> Generator[Ask | Wait, Any, dict[TopicPartition, Answer] | None]:
        def build(leaders: Mapping[TopicPartition, KnownLeader]) -> DescribeVisibilityRequest:
            return visibility_request(leaders, since)

        found = yield from self.ask_leaders(since, build, read_visibility, ANSWERED_OR_TOO_LATE)
        self.tell(f"is told {found}")
        if None not in found.values():
            return found
        if is_last:
            raise GaveUpError
        return None

    # ---- rows ----------------------------------------------------------------------------------------------

    def _read(self, part: PartitionCut) -> Script:
        position, start = 0, 0
        shown: list[Entry] = []
        until_us = self.patience_until_us()
        while position < part.high_watermark:
            answer = yield from self._fetch(position)
            if answer is None or answer.error_code is not ErrorCode.none:
                if answer is not None and _begins_later(answer, position):
                    position = start = answer.log_start_offset
                yield from self.pause(until_us)
                continue
            fetched = fetched_of(self._where, position, answer, part)
            try:
                shown += _shown(fetched)
            except CorruptBatch:
                yield from self.pause(until_us)
                continue
            if fetched.next_offset == position:
                yield from self.pause(until_us)
            position = fetched.next_offset
        self.tell(f"has read {self._where} to {part.high_watermark}: {[str(one) for one in shown]}")
        self._rules.on_read(self._execution, self._where, Read(start, tuple(shown)))

    def _fetch(self, position: int) -> Generator[Ask | Wait, Any, FetchPartitionData | None]:
        yield from self.find_leaders([self._where])
        if self._where not in self.leaders:
            return None
        host, leader = self.leaders[self._where]
        size = self._draw.choice(BYTES)
        terms = FetchTerms(100, size, size, isolation_level=0, with_aborted=True)
        response = yield from self.ask(
            host, fetch_request({self._where: leader}, {self._where: position}, terms)
        )
        if response is None or not response.responses:
            return None
        answer: FetchPartitionData = response.responses[0].partitions[0]
        return answer


def _shown(fetched: Fetched) -> list[Entry]:
    """The batches that hold rows for the task; CorruptBatch if it cannot know that of one."""
    assert fetched.cut is not None
    return [entry_of(header) for _, header in fetched.visible(fetched.cut.high_watermark)]


def _begins_later(answer: FetchPartitionData, position: int) -> bool:
    """Whether records were deleted before the task had read any."""
    is_first = position == 0 and answer.error_code is ErrorCode.offset_out_of_range
    return is_first and answer.log_start_offset > position


def _ends_request(leaders: Mapping[TopicPartition, KnownLeader]) -> ListOffsetsRequest:
    timestamps_ms = dict.fromkeys(leaders, LATEST_TIMESTAMP)
    return offsets_request(leaders, timestamps_ms, IsolationLevel.READ_UNCOMMITTED, CONSUMER)
