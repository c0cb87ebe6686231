"""What a write's options mean, and what is refused."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.records.envelope import Compression
from sparklog_datasource.writing.write_options import WriteOptions


def options(**more: str) -> WriteOptions:
    return WriteOptions.of({"kafka.bootstrap.servers": "127.0.0.1:9092", **more})


def client(name: str, text: str) -> WriteOptions:
    return options(**{f"kafka.{name}": text})


def test_writes_are_idempotent_and_wait_for_all_replicas() -> None:
    assert (options().acks, options().is_idempotent) == (-1, True)


def test_only_writes_may_create_topics() -> None:
    assert options().connection.auto_create_topics


def test_the_topic_is_trimmed_and_must_be_legal() -> None:
    assert options(topic=" t ").topic == "t"
    assert options().topic is None
    with pytest.raises(ConfigError, match=r"topic='a b': topic name"):
        options(topic="a b")


@pytest.mark.parametrize(("text", "acks"), [("0", 0), ("1", 1)])
def test_fewer_acknowledgements_end_idempotence(text: str, acks: int) -> None:
    assert (client("acks", text).acks, client("acks", text).is_idempotent) == (acks, False)


def test_idempotence_without_all_acknowledgements_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"enable.idempotence=true needs kafka.acks=all, not '1'"):
        options(**{"kafka.acks": "1", "kafka.enable.idempotence": "true"})
    with pytest.raises(ConfigError, match=r"kafka.acks='2': must be one of all, -1, 1, 0"):
        client("acks", "2")


@pytest.mark.parametrize(
    ("text", "compression"),
    [("none", Compression.NONE), ("LZ4", Compression.LZ4), ("zstd", Compression.ZSTD),
     ("snappy", Compression.LZ4), ("gzip", Compression.ZSTD)],
)  # fmt: skip
def test_codecs_that_arrow_lacks_are_replaced_by_their_likes(text: str, compression: Compression) -> None:
    assert client("compression.type", text).compression is compression


def test_sizes_and_times_of_the_kafka_client_are_heeded() -> None:
    given = options(
        **{"kafka.max.request.size": "1000", "kafka.delivery.timeout.ms": "7000", "kafka.max.block.ms": "800"}
    )
    assert (given.request_bytes_max, given.delivery_timeout_ms, given.topic_wait_ms) == (1_000, 7_000, 800)
    assert given.connection.retry_timeout_ms == 800
    assert options().request_bytes_max is None


def test_options_of_reads_are_passed_over_and_misspelt_ones_are_not() -> None:
    """A table has one set of options for both."""
    assert options(subscribe="a", startingOffsets="no such word", topic="b").topic == "b"
    with pytest.raises(ConfigError, match="unknown option 'topicc' for a sparklog write"):
        options(topicc="b")
