"""A task reads its range exactly; what is gone fails it or is passed over."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparklog.client.calls.retry import Deadline
from sparklog.client.errors import OffsetOutOfRange, RangeNotReadable, TopicRecreated
from sparklog.client.metadata.cluster_metadata import ClusterMetadata, TopicMetadata
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.network.clock import SystemClock
from sparklog.records.row_columns import HEADERS_TYPE, row_batch
from sparklog_datasource.reads import range_reading as module
from sparklog_datasource.reads.data_loss import DataLost, Reason
from sparklog_datasource.reads.range_reading import ensure_topic_id, read_rows
from sparklog_datasource.reads.ranges import OffsetRange
from sparklog_datasource.reads.read_options import ReadOptions

T0 = TopicPartition("t", 0)
WANTED = OffsetRange(T0, 2, 8)


KNOWS_NO_TOPIC = SimpleNamespace(latest_metadata=SimpleNamespace(topics={}))


class Log:
    """Offsets from ``start`` to ``end``; reading may fail at some offsets, each once."""

    def __init__(self) -> None:
        self.start, self.end = 0, 100
        self.failures: dict[int, Exception] = {}

    def read_range(
        self, _: Any, tp: TopicPartition, start: int, end: int, **__: Any
    ) -> Iterator[pa.RecordBatch]:
        for offset in range(start, end):
            if offset in self.failures:
                raise self.failures[offset]
            if not self.start <= offset < self.end:
                raise OffsetOutOfRange(tp, offset, self.start, self.end)
            yield row_batch(
                key=pa.nulls(1, pa.binary()),
                value=pa.array([b"v"]),
                timestamps_ms=np.zeros(1, np.int64),
                headers=pa.nulls(1, HEADERS_TYPE),
                offsets=np.array([offset]),
                timestamp_types=np.zeros(1, np.int32),
            )


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    made = Log()
    monkeypatch.setattr(module, "cluster_client", lambda _: KNOWS_NO_TOPIC)
    monkeypatch.setattr(module, "ensure_topic_id", lambda *_: None)
    monkeypatch.setattr(module, "read_range", made.read_range)
    monkeypatch.setattr(module, "latest_offsets", lambda *_: {T0: made.end})
    monkeypatch.setattr(module, "deletion_reason", lambda *_: Reason.DELETED)
    return made


def offsets(*, fail_on_data_loss: bool = True) -> list[int]:
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
    options = ReadOptions.of_batch({**given, "failOnDataLoss": str(fail_on_data_loss)})
    batches = list(read_rows(options, WANTED))
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_a_range_is_read_exactly(log: Log) -> None:
    assert offsets() == [2, 3, 4, 5, 6, 7]


def test_records_that_aged_out_fail_the_task(log: Log) -> None:
    log.start = 4
    with pytest.raises(DataLost, match=r"t-0: 2 offsets are lost \(from 2 up to, not including, 4\): reten"):
        offsets()


def test_reading_goes_on_with_what_is_left_if_that_is_wanted(log: Log) -> None:
    log.start = 4
    assert offsets(fail_on_data_loss=False) == [4, 5, 6, 7]


def test_records_that_age_out_while_they_are_read_are_not_read_twice(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    log.failures[4] = OffsetOutOfRange(T0, 4, 6, 100)
    assert offsets(fail_on_data_loss=False) == [2, 3, 6, 7]
    assert caplog.messages == [
        "t-0: 2 offsets are lost (from 4 up to, not including, 6): retention or DeleteRecords deleted them. "
        "Some data may have been missed; the query goes on with what is left"
    ]


def test_one_warning_tells_all_that_a_task_lost(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.failures[3] = OffsetOutOfRange(T0, 3, 4, 100)
    log.failures[4] = OffsetOutOfRange(T0, 4, 5, 100)
    log.failures[7] = TopicRecreated(T0)
    assert offsets(fail_on_data_loss=False) == [2, 5, 6]
    (told,) = caplog.messages
    assert "2 offsets are lost (from 3 up to, not including, 5): retention or DeleteRecords" in told
    assert "1 offset is lost (from 7 up to, not including, 8): the topic was deleted" in told


def test_a_reader_who_leaves_early_is_told_of_what_was_passed_over(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    log.start = 4
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "failOnDataLoss": "false"}
    rows = read_rows(ReadOptions.of_batch(given), WANTED)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert len(caplog.messages) == 1


def test_a_log_that_ends_within_the_range_is_a_loss(log: Log) -> None:
    log.end = 5
    with pytest.raises(DataLost, match=r"3 offsets are lost \(from 5 up to, not including, 8\): the log"):
        offsets()
    assert offsets(fail_on_data_loss=False) == [2, 3, 4]


def test_everything_gone_is_no_rows(log: Log) -> None:
    log.start = 50
    assert offsets(fail_on_data_loss=False) == []


def test_a_range_that_does_not_become_readable_is_a_loss_only_if_the_log_is_shorter(log: Log) -> None:
    log.failures[5] = RangeNotReadable(T0, 5, 8, 100, "so")
    with pytest.raises(RangeNotReadable):
        offsets(fail_on_data_loss=False)
    log.end = 5
    assert offsets(fail_on_data_loss=False) == [2, 3, 4]
    with pytest.raises(DataLost):
        offsets()


@pytest.mark.parametrize("error", [TopicRecreated(T0), KafkaError(ErrorCode.unknown_topic_or_partition, "t")])
def test_a_topic_that_is_gone_is_a_loss(log: Log, error: Exception) -> None:
    log.failures[5] = error
    assert offsets(fail_on_data_loss=False) == [2, 3, 4]
    with pytest.raises(DataLost):
        offsets()


def test_other_errors_are_no_loss(log: Log) -> None:
    log.failures[5] = KafkaError(ErrorCode.topic_authorization_failed, "t")
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        offsets(fail_on_data_loss=False)


class Brokers:
    """A cluster whose brokers tell of ``ids`` one after the other; the last one stays."""

    def __init__(self, known: int | None, *ids: int) -> None:
        self.latest_metadata = self._picture(known)
        self._ids = list(ids)
        self.asked = 0

    def _picture(self, number: int | None) -> ClusterMetadata:
        topics = {} if number is None else {"t": TopicMetadata("t", TopicId(int=number), {})}
        return ClusterMetadata(topics=topics)

    def metadata(self, topics: list[str], *, max_age_ms: int) -> ClusterMetadata:
        assert (topics, max_age_ms) == (["t"], 0)
        self.asked += 1
        return self._picture(self._ids.pop(0) if len(self._ids) > 1 else self._ids[0])

    def deadline(self, timeout_ms: int) -> Deadline:
        return Deadline(SystemClock(), 200)


@pytest.mark.parametrize(
    ("known", "ids", "wanted", "asked"),
    [
        (1, [1], TopicId(int=1), 0),
        (None, [1], TopicId(int=1), 1),
        (1, [1], None, 1),
        (1, [2], TopicId(int=2), 1),
        (1, [1, 1, 2], TopicId(int=2), 3),
    ],
)
def test_a_process_does_not_go_by_an_earlier_topic_of_the_same_name(
    known: int | None, ids: list[int], wanted: TopicId | None, asked: int
) -> None:
    brokers = Brokers(known, *ids)
    ensure_topic_id(brokers, "t", wanted)  # type: ignore[arg-type]
    assert brokers.asked == asked


def test_looking_for_a_topic_that_is_no_more_ends() -> None:
    ensure_topic_id(Brokers(1, 1), "t", TopicId(int=2))  # type: ignore[arg-type]
