"""What a streaming source answers Spark, over a log that a test moves by hand."""

import json
import pickle
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import sparklog_datasource.stream.stream_reader as module
from sparklog.model.errors import ConfigError, SparklogError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.time import MonotonicMs
from sparklog_datasource.reads.data_loss import DataLost, Reason
from sparklog_datasource.reads.offset_json import Offsets
from sparklog_datasource.reads.ranges import OffsetRange
from sparklog_datasource.reads.read_options import ReadOptions
from sparklog_datasource.rows.form import RowForm, row_type
from sparklog_datasource.stream.stream_reader import RefusingReader, StreamReader, stream_reader

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
TOPIC_ID = TopicId(int=7)
ALL = ReadAllAvailable()
Json = dict[str, Any]


class Log:
    """Stands in for LatestOffsets: starts and ends as a test sets them."""

    def __init__(self, **ends: int) -> None:
        self.starts: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.topic_ids = {"t": TOPIC_ID}
        self.now = 0
        self.grow(**ends)

    def grow(self, **ends: int) -> None:
        for name, end in ends.items():
            tp = TopicPartition(name[0], int(name[1]))
            self.ends[tp] = end
            self.starts.setdefault(tp, 0)

    def now_ms(self) -> MonotonicMs:
        return MonotonicMs(self.now)

    def deletion_reason(self, topic: str) -> Reason:
        return Reason.DELETED

    def recreate(self, topic: str, **ends: int) -> None:
        self.topic_ids = {**self.topic_ids, topic: TopicId(int=self.topic_ids[topic].int + 1)}
        self.starts, self.ends = {}, {}
        self.grow(**ends)

    def initial(self) -> dict[TopicPartition, int]:
        return dict(self.ends)

    def latest(self, known: Any, known_ids: Any) -> dict[TopicPartition, int]:
        return dict(self.ends)

    def earliest(self, tps: set[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self.starts[tp] for tp in tps if tp in self.starts}


def reader(log: Log, **more: str) -> StreamReader:
    given = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "t", **more}
    return StreamReader(ReadOptions.of_stream(given), log)  # type: ignore[arg-type]


def over_the_wire(offset: Json) -> Json:
    """As Spark hands offsets back: through a text and, in the checkpoint, through a file."""
    returned = json.loads(json.dumps(offset))
    assert isinstance(returned, dict)
    return returned


def bare(offset: Json) -> Json:
    """Without the note."""
    return {topic: inner for topic, inner in offset.items() if topic != "$sparklog"}


def planned(source: StreamReader, start: Json, end: Json) -> list[tuple[TopicPartition, int, int]]:
    return [piece for task in tasks(source, start, end) for piece in task]


def tasks(source: StreamReader, start: Json, end: Json) -> list[list[tuple[TopicPartition, int, int]]]:
    parts = source.partitions(over_the_wire(start), over_the_wire(end))
    return [
        [(wanted.topic_partition, wanted.start_offset, wanted.end_offset) for wanted in part.ranges]
        for part in parts
    ]


def test_the_initial_offset_is_the_same_when_it_is_asked_for_again() -> None:
    log = Log(t0=5)
    source = reader(log)
    first = source.initialOffset()
    log.grow(t0=9)
    assert source.initialOffset() == first
    assert bare(first) == {"t": {"0": 5}}


def test_the_end_of_the_first_micro_batch_carries_the_initial_offset() -> None:
    log = Log(t0=5)
    source = reader(log)
    start = over_the_wire(source.initialOffset())
    log.grow(t0=9)
    end = source.latestOffset(start, ALL)
    assert end["t"] == {"0": 9}
    assert end["$sparklog"]["initial"] == {"t": {"0": 5}}


def test_after_a_restart_an_uncommitted_first_micro_batch_reads_what_it_was_planned_to() -> None:
    log = Log(t0=5)
    before = reader(log)
    start = over_the_wire(before.initialOffset())
    log.grow(t0=9)
    end = over_the_wire(before.latestOffset(start, ALL))
    log.grow(t0=140)
    after = reader(log)
    assert planned(after, after.initialOffset(), end) == [(T0, 5, 9)]
    log.grow(t0=150)
    next_end = after.latestOffset(end, ALL)
    assert planned(after, end, next_end) == [(T0, 9, 150)]
    assert bare(next_end) == {"t": {"0": 150}}
    assert "initial" not in next_end["$sparklog"]


def test_an_empty_first_micro_batch_fixes_the_start_too() -> None:
    log = Log(t0=5)
    source = reader(log)
    start = over_the_wire(source.initialOffset())
    end = over_the_wire(source.latestOffset(start, ALL))
    assert end["$sparklog"]["initial"] == bare(start)
    assert planned(source, start, end) == []
    assert source.latestOffset(end, ALL) == end


def test_nothing_new_is_told_by_the_very_same_offset() -> None:
    log = Log(t0=5)
    source = reader(log)
    start = {"t": {"0": 5}}
    assert source.latestOffset(start, ALL) is start


def test_a_source_without_partitions_returns_its_start() -> None:
    source = reader(Log())
    start = over_the_wire(source.initialOffset())
    assert start == {}
    assert source.latestOffset(start, ALL) is start
    assert planned(source, start, start) == []


def test_every_offset_carries_the_ids_of_its_topics() -> None:
    log = Log(t0=5)
    source = reader(log)
    ids = {"t": str(TOPIC_ID)}
    start = over_the_wire(source.initialOffset())
    end = over_the_wire(source.latestOffset(start, ALL))
    log.grow(t0=6)
    later = source.latestOffset(end, ALL)
    assert [offset["$sparklog"]["topics"] for offset in (start, end, later)] == [ids, ids, ids]
    assert later == {"$sparklog": {"version": 2, "topics": ids}, "t": {"0": 6}}


def test_new_partitions_are_read_from_their_beginning() -> None:
    log = Log(t0=5, t1=3)
    source = reader(log)
    start, end = {"t": {"0": 5}}, {"t": {"0": 5, "1": 3}}
    assert bare(source.latestOffset(start, ALL)) == end
    assert planned(source, start, end) == [(T1, 0, 3)]


def test_the_plan_names_the_topic_that_the_offsets_belong_to() -> None:
    source = reader(Log(t0=5))
    assert source.partitions({"t": {"0": 0}}, {"t": {"0": 5}})[0].topic_ids == {"t": TOPIC_ID}


def test_a_small_micro_batch_is_read_by_one_task_and_a_backlog_by_one_for_each_partition() -> None:
    source = reader(Log(t0=5_000, t1=5_000))
    start = {"t": {"0": 10, "1": 20}}
    assert tasks(source, start, {"t": {"0": 15, "1": 22}}) == [[(T0, 10, 15), (T1, 20, 22)]]
    assert tasks(source, start, {"t": {"0": 15, "1": 5_000}}) == [[(T0, 10, 15)], [(T1, 20, 5_000)]]
    assert tasks(source, start, start) == []


def test_a_small_micro_batch_is_divided_as_the_options_say() -> None:
    start, end = {"t": {"0": 10, "1": 20}}, {"t": {"0": 14, "1": 22}}
    for_two = reader(Log(t0=50, t1=50), minPartitions="2")
    assert tasks(for_two, start, end) == [[(T0, 10, 14)], [(T1, 20, 22)]]
    by_two = reader(Log(t0=50, t1=50), maxRecordsPerPartition="2")
    assert tasks(by_two, start, end) == [[(T0, 10, 12)], [(T0, 12, 14)], [(T1, 20, 22)]]


def test_one_task_of_a_micro_batch_reports_the_ends_of_all_partitions() -> None:
    parts = reader(Log(t0=5_000, t1=5_000)).partitions({"t": {"0": 0, "1": 0}}, {"t": {"0": 5_000, "1": 5}})
    assert [part.reported for part in parts] == [{T0: 5_000, T1: 5}, None]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"t": {"0": 5}, "u": {"0": 1}}, "partitions u-0 are gone"),
        ({"t": {"0": 6}}, "offset of t-0 was changed from 6 to 5"),
        ({}, "added partition t-0 starts from 2 instead of 0"),
    ],
)
def test_losses_fail_the_query_or_are_passed_over(start: Json, message: str) -> None:
    log = Log(t0=5)
    log.starts[T0] = 2
    end = {"t": {"0": 5}}
    with pytest.raises(DataLost, match=f"{message}.*failOnDataLoss"):
        planned(reader(log), start, end)
    planned(reader(log, failOnDataLoss="false"), start, end)


def test_partitions_that_came_and_went_are_a_loss() -> None:
    log = Log(t0=5)
    end = {"t": {"0": 5}, "u": {"0": 4}}
    with pytest.raises(DataLost, match="cannot find the earliest offsets of u-0"):
        planned(reader(log), {"t": {"0": 0}}, end)
    assert planned(reader(log, failOnDataLoss="false"), {"t": {"0": 0}}, end) == [(T0, 0, 5)]


def test_a_checkpoint_that_ends_behind_the_log_is_a_loss() -> None:
    log = Log(t0=5)
    start, end = {"t": {"0": 2}}, {"t": {"0": 8}}
    with pytest.raises(DataLost, match="end of t-0 was changed from 8 to 5"):
        planned(reader(log), start, end)
    assert planned(reader(log, failOnDataLoss="false"), start, end) == [(T0, 2, 5)]


def noted(topic_id: int, **offsets: int) -> Json:
    """A checkpoint's offset of partition t-0, with the id of the topic."""
    return {
        "$sparklog": {"version": 2, "topics": {"t": str(TopicId(int=topic_id))}},
        "t": {number.removeprefix("t"): offset for number, offset in offsets.items()},
    }


@pytest.mark.parametrize("end_now", [2, 5, 9], ids=["shorter", "as long", "longer"])
def test_a_topic_that_was_created_again_is_a_loss_whatever_its_length(end_now: int) -> None:
    log = Log(t0=5)
    log.recreate("t", t0=end_now)
    start = noted(7, t0=5)
    strict, lenient = reader(log), reader(log, failOnDataLoss="false")
    end = strict.latestOffset(start, ALL)
    assert end == noted(8, t0=end_now)
    with pytest.raises(DataLost, match=r"all offsets from 5 on are lost: the topic was deleted and creat"):
        planned(strict, start, end)
    assert planned(lenient, start, lenient.latestOffset(start, ALL)) == [(T0, 0, end_now)]
    assert lenient.latestOffset(end, ALL) is end


def test_the_limit_counts_a_topic_that_was_created_again_from_its_beginning() -> None:
    log = Log(t0=5)
    log.recreate("t", t0=9)
    source = reader(log, maxOffsetsPerTrigger="3", failOnDataLoss="false")
    end = source.latestOffset(noted(7, t0=5), ReadMaxRows(3))
    assert bare(end) == {"t": {"0": 3}}
    assert planned(source, noted(7, t0=5), end) == [(T0, 0, 3)]


def test_a_planned_micro_batch_of_a_topic_that_was_created_again_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = Log(t0=5)
    log.recreate("t", t0=9)
    start, end = noted(7, t0=2), noted(7, t0=5)
    with pytest.raises(DataLost, match=r"3 offsets are lost \(from 2 up to, not including, 5\): the topic"):
        planned(reader(log), start, end)
    source = reader(log, failOnDataLoss="false")
    assert planned(source, start, end) == []
    assert planned(source, end, source.latestOffset(end, ALL)) == [(T0, 0, 9)]
    assert len(caplog.messages) == 2


def test_a_checkpoint_of_an_earlier_release_has_no_ids_and_is_read() -> None:
    log = Log(t0=5)
    source = reader(log)
    start = {"$sparklog": {"version": 1, "initial": {"t": {"0": 0}}}, "t": {"0": 3}}
    assert source.latestOffset({"t": {"0": 5}}, ALL) == {"t": {"0": 5}}
    end = source.latestOffset(start, ALL)
    assert end == noted(7, t0=5)
    assert planned(source, start, end) == [(T0, 3, 5)]


def test_all_that_a_plan_loses_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    log = Log(t0=5)
    start, end = {"t": {"0": 6, "1": 4}, "u": {"0": 1}}, {"t": {"0": 5}}
    told = (
        "t-1: all offsets from 4 on are lost: the topic was deleted; partitions t-1 are gone; "
        "u-0: all offsets from 1 on are lost: the topic was deleted; partitions u-0 are gone; "
        "t-0: all offsets from 6 on are lost: the log ends before them (an unclean election cut it, or the "
        "topic was created again); the offset of t-0 was changed from 6 to 5. Some data may have been missed"
    )
    with pytest.raises(DataLost) as caught:
        planned(reader(log), start, end)
    assert str(caught.value).startswith(told)
    assert planned(reader(log, failOnDataLoss="false"), start, end) == []
    assert caplog.messages == [f"{told}; the query goes on with what is left"]


def test_records_that_aged_out_are_told_of_once_before_their_range_is_cut(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = Log(t0=100)
    log.starts[T0] = 60
    source = reader(log, minPartitions="4", failOnDataLoss="false")
    assert planned(source, {"t": {"0": 0}}, {"t": {"0": 100}}) == [
        (T0, 60, 70), (T0, 70, 80), (T0, 80, 90), (T0, 90, 100)
    ]  # fmt: skip
    assert caplog.messages == [
        "t-0: 60 offsets are lost (from 0 up to, not including, 60): retention or DeleteRecords deleted "
        "them. Some data may have been missed; the query goes on with what is left"
    ]


def test_the_maximum_is_shared_also_with_new_partitions() -> None:
    source = reader(Log(t0=100, t1=100), maxOffsetsPerTrigger="10")
    assert source.getDefaultReadLimit() == ReadMaxRows(10)
    assert bare(source.latestOffset({"t": {"0": 0}}, ReadMaxRows(10))) == {"t": {"0": 5, "1": 5}}


def test_once_ignores_the_maximum() -> None:
    source = reader(Log(t0=100), maxOffsetsPerTrigger="10")
    assert bare(source.latestOffset({"t": {"0": 0}}, ALL)) == {"t": {"0": 100}}


def test_without_limits_everything_is_asked_for() -> None:
    assert reader(Log()).getDefaultReadLimit() == ALL


def test_the_minimum_holds_micro_batches_back() -> None:
    log = Log(t0=1)
    source = reader(log, minOffsetsPerTrigger="10", maxTriggerDelay="1s")
    limit = source.getDefaultReadLimit()
    first = source.latestOffset({"t": {"0": 0}}, limit)
    assert bare(first) == {"t": {"0": 1}}
    log.grow(t0=5)
    assert source.latestOffset(first, limit) is first
    log.now = 1_000
    assert bare(source.latestOffset(first, limit)) == {"t": {"0": 5}}


def test_progress_tells_the_latest_offset_whatever_the_limit() -> None:
    source = reader(Log(t0=100), maxOffsetsPerTrigger="10")
    assert source.reportLatestOffset() is None
    source.latestOffset({"t": {"0": 0}}, ReadMaxRows(10))
    assert source.reportLatestOffset() == {"t": {"0": 100}}


def test_available_now_ends_where_the_log_ended_when_it_began() -> None:
    log = Log(t0=15)
    source = reader(log, maxOffsetsPerTrigger="5", minOffsetsPerTrigger="4")
    source.prepareForTriggerAvailableNow()
    offset: Json = {"t": {"0": 0}}
    ends = []
    while (end := source.latestOffset(offset, source.getDefaultReadLimit())) != offset:
        log.grow(t0=log.ends[T0] + 7)
        planned(source, offset, end)
        ends.append(end["t"]["0"])
        offset = over_the_wire(end)
    assert ends == [5, 10, 15]


def test_available_now_fails_if_partitions_vanish_while_it_runs() -> None:
    log = Log(t0=15, t1=3)
    source = reader(log, maxOffsetsPerTrigger="5")
    source.prepareForTriggerAvailableNow()
    start = {"t": {"0": 0, "1": 0}}
    end = source.latestOffset(start, source.getDefaultReadLimit())
    del log.ends[T1]
    with pytest.raises(SparklogError, match="are gone"):
        planned(source, start, end)


class Task:
    """One task of ``partitions``, its fetches and its report played; ``told`` has what happened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rows: list[str]) -> None:
        self.told: list[str] = []
        self.rows = rows
        monkeypatch.setattr(module, "read_rows", self._fetch)
        monkeypatch.setattr(module, "group_of_task", lambda _: "group")
        monkeypatch.setattr(module, "reporter", lambda _: self)
        source = reader(Log(t0=5, t1=5))
        (part,) = source.partitions({"t": {"0": 0, "1": 0}}, {"t": {"0": 5, "1": 5}})
        self.batches = source.read(part)

    def _fetch(self, _: ReadOptions, wanted: OffsetRange, __: TopicId) -> Iterator[str]:
        self.told.append(f"fetch {wanted.topic_partition}")
        try:
            yield from self.rows
        finally:
            self.told.append(f"close {wanted.topic_partition}")

    def report(self, group: str, ends: Offsets, metadata: str) -> None:
        assert metadata == "", "no query runs this task"
        self.told.append(f"report {group} {sorted(ends.values())}")


def test_a_task_reports_offsets_when_its_first_rows_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(monkeypatch, ["rows"])
    assert next(task.batches) == "rows"
    assert task.told == ["fetch t-0", "report group [5, 5]"]
    assert list(task.batches) == ["rows"]
    assert task.told[2:] == ["close t-0", "fetch t-1", "close t-1"]


def test_a_task_that_finds_no_visible_rows_reports_offsets_too(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(monkeypatch, [])
    assert list(task.batches) == []
    assert task.told[-1] == "report group [5, 5]"


@pytest.mark.parametrize("taken", [1, 2])
def test_a_task_that_is_left_early_closes_its_fetches(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    task = Task(monkeypatch, ["rows", "more rows"])
    assert [next(task.batches) for _ in range(taken)] == ["rows", "more rows"][:taken]
    assert isinstance(task.batches, Generator)
    task.batches.close()
    assert task.told[-1] == "close t-0"


def test_ranges_are_cut_as_asked_for() -> None:
    source = reader(Log(t0=100), minPartitions="4")
    assert len(planned(source, {"t": {"0": 0}}, {"t": {"0": 100}})) == 4


def test_a_reader_can_be_pickled_to_tasks() -> None:
    options = ReadOptions.of_stream({"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "t"})
    copied = pickle.loads(pickle.dumps(StreamReader(options)))  # what Spark does; nothing from a network
    assert list(copied.read(None)) == []


def test_wrong_options_are_told_by_the_first_question_not_while_the_reader_is_made() -> None:
    refusing = stream_reader(
        {"kafka.bootstrap.servers": "127.0.0.1:1", "endingOffsets": "latest"}, row_type(RowForm())
    )
    assert isinstance(pickle.loads(pickle.dumps(refusing)), RefusingReader)
    questions: list[Any] = [
        refusing.getDefaultReadLimit,
        refusing.initialOffset,
        lambda: refusing.latestOffset({}, ALL),
        lambda: refusing.partitions({}, {}),
        lambda: refusing.read(None),
    ]
    for question in questions:
        with pytest.raises(ConfigError, match="ending offset not valid in streaming queries"):
            question()
    refusing.stop()
