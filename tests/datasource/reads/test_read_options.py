"""What a read's options mean, which of them exclude each other, and what is refused."""

import pytest

from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import TopicMetadata
from sparklog.model.errors import ConfigError
from sparklog.model.ids import NO_TOPIC_ID, TopicPartition
from sparklog_datasource.reads.bounds import EARLIEST, LATEST, AtOffset, AtTime, Each, Everywhere
from sparklog_datasource.reads.read_options import ReadOptions
from sparklog_datasource.rows.form import RowForm

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BASE = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
SUBSCRIBED = {**BASE, "subscribe": "t"}


def topic(name: str, *, partitions: int = 2, is_internal: bool = False) -> TopicMetadata:
    numbers = dict.fromkeys(range(partitions))
    return TopicMetadata(name, NO_TOPIC_ID, numbers, is_internal)  # type: ignore[arg-type]


def batch(**more: str) -> ReadOptions:
    return ReadOptions.of_batch({**SUBSCRIBED, **more})


def stream(**more: str) -> ReadOptions:
    return ReadOptions.of_stream({**SUBSCRIBED, **more})


def test_a_batch_reads_from_earliest_to_latest_by_default() -> None:
    assert (batch().start, batch().end) == (Everywhere(EARLIEST), Everywhere(LATEST))


def test_a_stream_starts_at_latest_by_default() -> None:
    assert stream().start == Everywhere(LATEST)


def test_defaults_are_those_of_the_kafka_connector() -> None:
    options = stream()
    assert options.fail_on_data_loss
    assert options.form == RowForm()
    assert options.trigger_delay_max_ms == 900_000
    assert options.offset_retries_max == 3
    assert options.poll_timeout_ms == 120_000


def test_offset_words_are_read_in_any_case() -> None:
    assert stream(startingOffsets=" EARLIEST ").start == Everywhere(EARLIEST)


def test_offsets_per_partition_must_name_exactly_what_is_read() -> None:
    start = batch(startingOffsets='{"t":{"0":5,"1":-2}}').start
    assert start.each([T1, T0]) == {T0: AtOffset(5), T1: EARLIEST}
    with pytest.raises(
        ConfigError, match=r"startingOffsets must name all.*Specified: t-0, t-1. Assigned: t-0$"
    ):
        start.each([T0])


def test_a_global_timestamp_beats_those_per_partition_which_beat_offsets() -> None:
    by_offset = {"startingOffsets": "earliest"}
    by_time = {**by_offset, "startingOffsetsByTimestamp": '{"t":{"0":7}}'}
    everywhere = {**by_time, "startingTimestamp": "9"}
    assert batch(**by_time).start == Each({T0: AtTime(7, or_latest=False)}, "startingOffsetsByTimestamp")
    assert batch(**everywhere).start == Everywhere(AtTime(9, or_latest=False))


def test_the_strategy_is_for_starting_timestamps_only() -> None:
    options = batch(startingTimestamp="1", endingTimestamp="2", startingOffsetsByTimestampStrategy="Latest")
    assert options.start == Everywhere(AtTime(1, or_latest=True))
    assert batch(endingTimestamp="2").end == Everywhere(AtTime(2, or_latest=True))
    with pytest.raises(ConfigError, match="startingOffsetsByTimestampStrategy='x': must be error or latest"):
        batch(startingOffsetsByTimestampStrategy="x")


def test_a_timestamp_that_is_no_number_is_refused() -> None:
    with pytest.raises(ConfigError, match="startingTimestamp: expected a single long value"):
        batch(startingTimestamp='{"t":{"0":1}}')


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"startingOffsets": "latest"}, "starting offset can't be latest for batch"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest for batch"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "starting offset for t-0 can't be latest"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "ending offset for t-0 can't be earliest"),
    ],
)
def test_a_batch_refuses_to_start_at_the_end_or_to_end_at_the_start(
    more: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        batch(**more)


@pytest.mark.parametrize("option", ["endingOffsets", "EndingOffsetsByTimestamp", "endingtimestamp"])
def test_a_stream_has_no_end(option: str) -> None:
    with pytest.raises(ConfigError, match=r"ending (offset|timestamp) not valid in streaming"):
        stream(**{option: "1"})


@pytest.mark.parametrize("option", ["minPartitions", "maxRecordsPerPartition", "maxOffsetsPerTrigger"])
def test_counts_must_be_positive(option: str) -> None:
    with pytest.raises(ConfigError, match=f"{option}=0: must be positive"):
        stream(**{option: "0"})


def test_a_minimum_above_the_maximum_is_refused() -> None:
    with pytest.raises(ConfigError, match="minOffsetsPerTrigger=5 is above maxOffsetsPerTrigger=4"):
        stream(minOffsetsPerTrigger="5", maxOffsetsPerTrigger="4")


def test_reads_are_read_committed_unless_told_otherwise() -> None:
    assert batch().isolation_level is IsolationLevel.READ_COMMITTED
    uncommitted = batch(**{"kafka.isolation.level": "read_uncommitted"})
    assert uncommitted.isolation_level is IsolationLevel.READ_UNCOMMITTED
    with pytest.raises(ConfigError, match=r"isolation.level='x': must be one of"):
        batch(**{"kafka.isolation.level": "x"})


@pytest.mark.parametrize(
    ("strategies", "found"),
    [
        ({"subscribe": "t", "subscribePattern": "t"}, "subscribe and subscribePattern"),
        ({"assign": '{"t":[0]}', "subscribe": "t"}, "assign and subscribe"),
    ],
)
def test_only_one_way_to_name_partitions_is_taken(strategies: dict[str, str], found: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"only one of assign, subscribe, subscribePattern may be set; found {found}"
    ):
        ReadOptions.of_any({**BASE, **strategies})


def test_a_read_without_a_subscription_is_refused_also_beside_the_topic_of_a_write() -> None:
    with pytest.raises(ConfigError, match=r"one of the following options must be specified.*topic is for wr"):
        ReadOptions.of_any({**BASE, "topic": "t"})


def test_both_ends_name_the_same_partitions() -> None:
    both = {"startingOffsets": '{"t":{"0":1}}', "endingOffsets": '{"t":{"0":2,"1":2}}'}
    with pytest.raises(
        ConfigError,
        match=r"startingOffsets and endingOffsets must name the same topic-partitions: different topic "
        r"partitions for starting offsets \(t-0\) and ending offsets \(t-0, t-1\)",
    ):
        batch(**both)
    assert batch(startingOffsets='{"t":{"0":1,"1":0}}', endingOffsets='{"t":{"1":2,"0":2}}')


@pytest.mark.parametrize(
    ("option", "text"), [("subscribe", " , "), ("assign", ""), ("assign", "{}"), ("subscribePattern", " ")]
)
def test_an_empty_subscription_is_refused(option: str, text: str) -> None:
    with pytest.raises(ConfigError, match=option):
        ReadOptions.of_any({**BASE, option: text})


def test_an_illegal_topic_name_or_pattern_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"subscribe='a b'.*characters other than"):
        ReadOptions.of_any({**BASE, "subscribe": "a b"})
    with pytest.raises(ConfigError, match="no regular expression"):
        ReadOptions.of_any({**BASE, "subscribePattern": "("})


def test_topics_are_trimmed_and_blanks_dropped() -> None:
    assert ReadOptions.of_any({**BASE, "subscribe": " a, ,b,a"}).subscription.topics == ("a", "b")


def test_a_pattern_is_searched_anywhere_and_never_finds_internal_topics() -> None:
    subscription = ReadOptions.of_any({**BASE, "subscribePattern": "t.*"}).subscription
    topics = [
        topic("xt1", partitions=1),
        topic("__t", is_internal=True),
        topic("other", partitions=1),
        topic("a"),
    ]
    assert subscription.partitions_of(topics) == [TopicPartition("other", 0), TopicPartition("xt1", 0)]


def test_an_assigned_partition_that_does_not_exist_is_left_out() -> None:
    subscription = ReadOptions.of_any({**BASE, "assign": '{"t":[1,7]}'}).subscription
    assert subscription.partitions_of([topic("t")]) == [T1]


def test_offsets_are_reported_unless_told_otherwise_and_never_to_the_users_group() -> None:
    assert (stream().reports_offsets, stream().report_as) == (True, None)
    given = stream(reportOffsets="false", reportAs=" billing ", **{"kafka.group.id": "other"})
    assert (given.reports_offsets, given.report_as) == (False, "billing")
    with pytest.raises(ConfigError, match=r"reportAs and kafka.group.id are both 'g'"):
        stream(reportAs="g", **{"kafka.group.id": "g"})
    with pytest.raises(ConfigError, match="reportAs is empty"):
        stream(reportAs=" ")


@pytest.mark.parametrize("other", ["minPartitions", "maxRecordsPerPartition"])
def test_bytes_per_task_and_counts_exclude_each_other(other: str) -> None:
    assert batch(bytesPerTask="1m").bytes_per_task == 2**20
    with pytest.raises(ConfigError, match=f"bytesPerTask and {other} both say how ranges are cut"):
        batch(bytesPerTask="1m", **{other: "5"})
