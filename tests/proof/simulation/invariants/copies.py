"""What a copy in a remote store has: the committed batches, byte for byte, and what goes with them."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyarrow import ipc

from simulation.invariants.invariant import Violation
from simulation.truth import Entry, PartitionTruth, entry_of
from sparklog.broker.remote_log.copying.survey import CHANGES_MAX
from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment, Suffix
from sparklog.core.remote_log.state_object import SegmentState, parse_state
from sparklog.model.errors import SparklogError
from sparklog.records.arrow.header import schema_version_of
from sparklog.records.envelope import BatchHeader, parse_header
from sparklog.records.remote_segment.rest_object import open_rest_object, rebuild

Read = Callable[[int, int], bytes]


@dataclass(frozen=True, slots=True)
class Copy:
    """A segment that a head leads to, with its objects out of ``objects``, the whole store by name.

    ``HeadsNameWholeObjects``: they are there, whole, and hold what is committed.
    ``FilesHaveTheRowsThatCount``: the file for people has these records, and none that were aborted; a raw
    copy has none.
    ``FilesHaveOneVersion``: all of them are rows of one version of a typed topic's columns.
    ``EpochsAreAsTheLogSays``: the state knows the leader epochs of all records from ``start_offset`` on.
    """

    truth: PartitionTruth
    remote: RemotePartition
    segment: RemoteSegment
    objects: Mapping[str, bytes]
    start_offset: int
    """Where the history begins."""

    def judge(self) -> None:
        """Raises ``Violation``."""
        segment = self.segment
        try:
            batches, rows = self._batches(), self._rows()
            state = parse_state(segment, self.objects[self.remote.object_name(segment, "state")])
        except (SparklogError, LookupError) as error:
            what = f"a head leads to {segment}, which is not whole: {error!r}"
            raise self._broken("HeadsNameWholeObjects", what) from error
        headers = [parse_header(batch) for batch in batches]
        self._judge_batches("HeadsNameWholeObjects", [entry_of(header) for header in headers])
        self._judge_rows(rows, [one for one in zip(headers, batches, strict=True) if self._counts(one[0])])
        self._judge_epochs(state)

    def judge_batches(self, rule: str) -> None:
        """Raises ``Violation`` of ``rule`` unless it has the committed batches; its objects are whole."""
        self._judge_batches(rule, [entry_of(header) for header in self._headers()])

    def entries(self) -> list[Entry]:
        """Its batches."""
        return [entry_of(header) for header in self._headers()]

    def _judge_batches(self, rule: str, found: list[Entry]) -> None:
        expected = _between(self.truth.committed, self.segment.base_offset, self.segment.end_offset)
        if found != expected:
            pairs = zip(found, expected, strict=False)
            wrong = next((f"{one}, and not {other}" for one, other in pairs if one != other), "none")
            raise self._broken(
                rule,
                f"{self._name} has {len(found)} batches; committed are {len(expected)}; the first that "
                f"differs is {wrong}",
            )

    @property
    def is_of_columns(self) -> bool:
        """Whether its file has the columns of a typed topic."""
        return bool(self.segment.arrow_bytes) and "_offset" in self._table().schema.names

    def _counts(self, header: BatchHeader) -> bool:
        return not (header.is_control or _was_aborted(self.truth, header))

    def _judge_rows(self, rows: list[int], batches: Sequence[tuple[BatchHeader, bytes]]) -> None:
        versions = [schema_version_of(batch, header) for header, batch in batches]
        changes = sum(before != after for before, after in pairwise(versions))
        is_raw = self.truth.is_raw or changes > CHANGES_MAX
        if changes and not is_raw:
            what = f"the file of {self._name} has rows of the versions {versions}"
            raise self._broken("FilesHaveOneVersion", what)
        count = [
            offset
            for header, _ in batches
            if not is_raw
            for offset in range(header.base_offset, header.next_offset)
        ]
        if rows != count:
            wrong = sorted(set(rows).symmetric_difference(count))
            raise self._broken(
                "FilesHaveTheRowsThatCount",
                f"the file of {self._name} has the rows {rows}; those that count are {count}; the first that "
                f"differs is {wrong[:1] or 'in another place'}",
            )

    def _judge_epochs(self, state: SegmentState) -> None:
        start = max(self.start_offset, self.truth.start_max)
        for entry in _between(self.truth.committed, start, self.segment.end_offset):
            offset = max(entry.base_offset, start)
            at = bisect_right(state.epochs, offset, key=lambda one: one[1]) - 1
            if at < 0 or state.epochs[at][0] != entry.leader_epoch:
                raise self._broken(
                    "EpochsAreAsTheLogSays",
                    f"the state of {self._name} has the epochs {state.epochs}; the log has {entry}",
                )

    @property
    def _name(self) -> str:
        return f"a copy of {self.segment.base_offset} to {self.segment.end_offset}"

    def _headers(self) -> list[BatchHeader]:
        return [parse_header(batch) for batch in self._batches()]

    def _batches(self) -> list[bytes]:
        rest = self._reads("rest", self.segment.rest_bytes)
        arrow = self._reads("arrow", self.segment.arrow_bytes) if self.segment.arrow_bytes else _nothing
        _, entries = open_rest_object(rest, self.segment.rest_bytes)
        end = self.segment.end_offset  # of a segment that was cut, what is behind it is in no log
        return [rebuild(one, rest, arrow) for one in entries if one.base_offset < end]

    def _rows(self) -> list[int]:
        """The offsets of the rows in the file for people."""
        if not self.segment.arrow_bytes:
            return []
        offsets: list[int] = self._table().column("_offset" if self.is_of_columns else "offset").to_pylist()
        return offsets

    def _table(self) -> pa.Table:
        with ipc.open_file(self.objects[self.remote.object_name(self.segment, "arrow")]) as file:
            return file.read_all()

    def _reads(self, suffix: Suffix, size: int) -> Read:
        name = self.remote.object_name(self.segment, suffix)
        data = self.objects[name]
        if len(data) != size:
            raise LookupError(f"{name} has {len(data)} bytes, and not {size}")
        return lambda start, length: data[start : start + length]

    def _broken(self, rule: str, what: str) -> Violation:
        return Violation(rule, f"{self.truth.topic_partition}: {what}")


def _nothing(start: int, length: int) -> bytes:
    return b""


def _was_aborted(truth: PartitionTruth, header: BatchHeader) -> bool:
    """Whether the next marker of its producer, of a batch in a transaction, is that of an abort."""
    if not header.is_transactional:
        return False
    behind = truth.committed[bisect_left(truth.committed, header.next_offset, key=_base_offset) :]
    for entry in behind:
        parts = (view.part(entry) for view in truth.views.values())
        part = next((one for one in parts if one is not None), None)
        if entry.producer_id == header.producer_id and part is not None and part.is_control:
            return part.end is not None and not part.end.is_commit
    return False


def _between(entries: list[Entry], start: int, end: int) -> list[Entry]:
    first = bisect_right(entries, start, key=_next_offset)
    return entries[first : bisect_left(entries, end, key=_base_offset)]


def _base_offset(entry: Entry) -> int:
    return entry.base_offset


def _next_offset(entry: Entry) -> int:
    return entry.next_offset
