"""``/topics/NAME/records``: records from newest, oldest, an offset or a time on; and one of them to keep.

An answer holds what one bounded step found: at most ``limit`` records, some of a second's reading. ``next``
is the place from which the following step goes on, ``ahead`` how many offsets lay ahead where this one
began, and ``left`` how many the look has not come to. Who wants to begin at an offset or a time, and gives
none, gets no records, and its name in ``missing``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sparklog.client.calls.retry import Deadline
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import TopicMetadata
from sparklog.client.offsets import earliest, for_times, latest
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog.web.records.log_reading import LogReading
from sparklog.web.records.shown_record import ShownRecord, text_of
from sparklog.web.records.stretches import (
    Stretch,
    cursor_after,
    cursor_of,
    cursor_text,
    newest_first,
    next_stretches,
    offsets_left,
    oldest_first,
)
from sparklog.web.shown_commands import shown
from sparklog.web.view_question import INT64_MAX, BadQuestion, NothingThere, Question
from sparklog.web.viewer import Viewer

STEP_MS: Final = 1_500
"""How long one answer may read."""
LIMIT: Final = 50
LIMIT_MAX: Final = 200
SEARCH_SPAN: Final = 20_000
"""Offsets of each partition between two looks at the clock, where a text is looked for."""
TIME_MS_MAX: Final = 253_402_300_799_999
"""The end of the year 9999."""
TEXT_MAX: Final = 250
GAPS_MAX: Final = 100
PREVIEW_BYTES: Final = 1_024
WHOLE_BYTES: Final = 256 * 1024
BACKWARD: Final = "newest"
BEGINS: Final = (BACKWARD, "oldest", "offset", "time")


@dataclass(frozen=True, slots=True)
class Octets:
    """Bytes to keep as a file, never shown by a browser."""

    name: str
    data: bytes


@dataclass(slots=True)
class _Look:
    """The bounds of the partitions, where the look stands, and what this step has found."""

    bounds: dict[int, Stretch]
    cursor: dict[int, int]
    is_backward: bool
    records: list[ShownRecord]
    gaps: list[dict[str, object]]

    @property
    def left(self) -> int:
        return offsets_left(self.cursor, self.bounds, is_backward=self.is_backward)


def records(viewer: Viewer, question: Question) -> dict[str, object]:
    topic = topic_of(viewer, question)
    text = question.text("text")
    if len(text) > TEXT_MAX:
        raise BadQuestion(f"text: {len(text)} characters; at most {TEXT_MAX} are looked for")
    limit = question.number("limit", LIMIT, least=1, most=LIMIT_MAX)
    look = _begin(viewer, question, topic)
    preview_bytes = WHOLE_BYTES if question.flag("whole") and limit == 1 else PREVIEW_BYTES
    ahead = look.left
    reading = LogReading(viewer.cluster, topic.name, text=text_of(text), preview_bytes=preview_bytes)
    _go_on(viewer, look, reading, limit, SEARCH_SPAN if text else limit)
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "is_typed": topic.schema_version > 0,
        "records": [record.as_json(topic.name) for record in look.records],
        "gaps": look.gaps[:GAPS_MAX],
        "bounds": {str(one): [bound.begin, bound.end] for one, bound in sorted(look.bounds.items())},
        "next": cursor_text(look.cursor),
        "ahead": ahead,
        "left": look.left,
        "missing": _missing(question),
        "total": sum(bound.end - bound.begin for bound in look.bounds.values()),
        "commands": [
            shown(viewer.options, f"consume --topic={topic.name} --from-beginning --max-messages 10")
        ],
    }


def record_part(viewer: Viewer, question: Question) -> Octets:
    """The whole key or value of one record."""
    topic = topic_of(viewer, question)
    partition = question.number("partition", 0, most=2**31 - 1)
    offset = question.number("offset", 0, most=INT64_MAX - 1)
    part_name = question.path["part"]
    if part_name not in ("key", "value"):
        raise NothingThere(f"a record has a key and a value, and no {part_name[:40]!r}")
    if partition not in topic.partitions:
        raise NothingThere(f"{topic.name} has no partition {partition}")
    reading = LogReading(viewer.cluster, topic.name, text=text_of(""), preview_bytes=INT64_MAX)
    stretch = {partition: Stretch(offset, offset + 1)}
    found = reading.read(stretch, viewer.metadata(), viewer.cluster.deadline(STEP_MS))[partition].records
    part = (found[0].key if part_name == "key" else found[0].value) if found else None
    if part is None:
        raise NothingThere(f"{topic.name}-{partition} has no {part_name} at offset {offset}")
    return Octets(f"{topic.name}-{partition}-{offset}.{part_name}", part.data)


def topic_of(viewer: Viewer, question: Question) -> TopicMetadata:
    """The topic of the path; NothingThere without one, KafkaError for one that this user may not read."""
    name = question.path["topic"]
    topic = viewer.metadata().topics.get(name) or viewer.cluster.metadata([name], max_age_ms=0).topics.get(
        name
    )
    if topic is None or topic.error_code in (
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.invalid_topic_exception,
    ):
        raise NothingThere(f"there is no topic {name[:250]!r}")
    if topic.error_code is not ErrorCode.none:
        raise KafkaError(topic.error_code, f"topic {name!r}")
    return topic


def _begin(viewer: Viewer, question: Question, topic: TopicMetadata) -> _Look:
    chosen = question.number_or_none("partition", most=2**31 - 1)
    if chosen is not None and chosen not in topic.partitions:
        raise BadQuestion(f"partition={chosen}: {topic.name} has 0 to {len(topic.partitions) - 1}")
    begin = question.choice("from", BEGINS)
    partitions = [one for one in topic.topic_partitions() if chosen in (None, one.partition)]
    bounds = _bounds(viewer, partitions)
    at = question.text("at")
    cursor = cursor_of(at) if at else _starts(viewer, question, begin, bounds, topic.name)
    return _Look(bounds, {one: at for one, at in cursor.items() if one in bounds}, begin == BACKWARD, [], [])


def _bounds(viewer: Viewer, partitions: Sequence[TopicPartition]) -> dict[int, Stretch]:
    """What readers may read of each partition; KafkaError or ClusterUnavailable if a leader is silent."""
    starts = earliest(viewer.cluster, partitions)
    ends = latest(viewer.cluster, partitions, IsolationLevel.READ_COMMITTED)
    return {one.partition: Stretch(starts[one], max(starts[one], ends[one])) for one in partitions}


def _starts(
    viewer: Viewer, question: Question, begin: str, bounds: Mapping[int, Stretch], topic: str
) -> dict[int, int]:
    if begin == BACKWARD or _missing(question):
        return {partition: bound.end for partition, bound in bounds.items()}
    if begin == "oldest":
        return {partition: bound.begin for partition, bound in bounds.items()}
    if begin == "offset":
        offset = question.number("offset", 0)
        return {one: max(bound.begin, min(offset, bound.end)) for one, bound in bounds.items()}
    time_ms = question.number("time", 0, most=TIME_MS_MAX)
    wanted = {TopicPartition(topic, partition): time_ms for partition in bounds}
    found = for_times(viewer.cluster, wanted, IsolationLevel.READ_COMMITTED)
    ends = {one: bounds[one.partition].end for one in wanted}
    return {one.partition: ends[one] if at is None else at.offset for one, at in found.items()}


def _missing(question: Question) -> str | None:
    """``offset`` or ``time``, if the look is to begin at one that is not given."""
    begin = question.choice("from", BEGINS)
    needs_it = begin in ("offset", "time") and not question.text("at")
    return begin if needs_it and not question.text(begin) else None


def _go_on(viewer: Viewer, look: _Look, reading: LogReading, limit: int, span: int) -> None:
    """Read until there are enough records, nothing is left, or the time is over; one stretch at the least."""
    deadline = viewer.cluster.deadline(STEP_MS)
    while len(look.records) < limit:
        stretches = next_stretches(look.cursor, look.bounds, is_backward=look.is_backward, span=span)
        if not stretches:
            return
        before = look.left
        _read_stretches(viewer, look, reading, stretches, limit, deadline)
        if deadline.is_over:
            return
        if look.left == before:  # leaders are changing, or there is too much in it for one step
            if span == 1:
                return
            span = max(1, span // 8)


def _read_stretches(
    viewer: Viewer,
    look: _Look,
    reading: LogReading,
    stretches: Mapping[int, Stretch],
    limit: int,
    deadline: Deadline,
) -> None:
    reads = reading.read(stretches, viewer.metadata(), deadline)
    if look.is_backward:  # what is newest was not reached in an unfinished stretch: it counts for nothing
        reads = {one: read for one, read in reads.items() if read.end >= stretches[one].end}
    done = {one: Stretch(stretches[one].begin, read.end) for one, read in reads.items()}
    found = {one: read.records for one, read in reads.items()}
    merged = newest_first(found.values()) if look.is_backward else oldest_first(found.values())
    taken = list(islice(merged, limit - len(look.records)))
    look.cursor = cursor_after(look.cursor, done, taken, found, is_backward=look.is_backward)
    look.records += taken
    look.gaps += [gap.as_json() for read in reads.values() for gap in read.gaps]
