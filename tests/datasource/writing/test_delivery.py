"""The options of an atomic write, and which write a task's rows belong to."""

import pickle
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.model.errors import ConfigError, SparklogError
from sparklog_datasource.writing import delivery, writer
from sparklog_datasource.writing.delivery import ExactlyOnce, attempt_name, batch_identity, stream_identity
from sparklog_datasource.writing.task import Written
from sparklog_datasource.writing.write_options import WriteOptions
from sparklog_datasource.writing.writer import BatchWriter, batch_writer, stream_writer
from tests.datasource.writing.test_writer import TEXT

TOPIC_AND_TEXT = StructType([*TEXT.fields, StructField("topic", StringType())])


def options(**more: str) -> WriteOptions:
    return WriteOptions.of({"kafka.bootstrap.servers": "127.0.0.1:1", **more})


def exactly_once(**more: str) -> ExactlyOnce | None:
    return options(delivery="exactly-once", **more).exactly_once


def test_a_write_is_exactly_once_unless_it_asks_for_less() -> None:
    assert options().exactly_once == ExactlyOnce(None, None, 300_000)
    assert exactly_once() == options().exactly_once
    assert options(delivery=" At-Least-Once ").exactly_once is None
    named = options(txnAppId="job", txnVersion="7", **{"kafka.transaction.timeout.ms": "900"})
    assert named.exactly_once == ExactlyOnce("job", 7, 900)


@pytest.mark.parametrize("weak", [{"kafka.acks": "1"}, {"kafka.enable.idempotence": "FALSE"}])
def test_weak_options_make_a_write_at_least_once_with_one_warning(
    weak: dict[str, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparklog_datasource.options.option_parsing._warned_of", set())
    for _ in range(2):
        assert options(**weak).exactly_once is None
    ((name, text),) = weak.items()
    (told,) = caplog.messages
    assert told.startswith(f"option {name}={text}: this write is at least once, not exactly once")
    assert options(delivery="at-least-once", **weak).exactly_once is None
    assert caplog.messages == [told]


def test_what_kafka_s_producer_does_by_default_is_exactly_once() -> None:
    given = {"kafka.acks": "all", "kafka.enable.idempotence": "true"}
    assert options(**given).exactly_once == options(**{"kafka.acks": "-1"}).exactly_once == exactly_once()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"delivery": "twice"}, "option delivery='twice': must be exactly-once or at-least-once"),
        (
            {"delivery": "at-least-once", "txnAppId": "a", "txnVersion": "1"},
            "txnAppId and txnVersion need delivery=exactly-once",
        ),
        ({"txnAppId": "a"}, "belong together"),
        ({"delivery": "exactly-once", "txnVersion": "1"}, "belong together"),
        ({"delivery": "exactly-once", "txnAppId": "a", "txnVersion": "-1"}, "option txnVersion=-1"),
        ({"delivery": "exactly-once", "txnAppId": "", "txnVersion": "1"}, "txnAppId has 0 characters"),
        (
            {"delivery": "exactly-once", "txnAppId": "a" * 901, "txnVersion": "1"},
            "txnAppId has 901 characters",
        ),
        (
            {"delivery": "exactly-once", "kafka.acks": "1"},
            "kafka.acks=1 does not go with delivery=exactly-once",
        ),
        (
            {"delivery": "exactly-once", "kafka.enable.idempotence": "false"},
            "kafka.enable.idempotence=false does not go with",
        ),
        (
            {"txnAppId": "a", "txnVersion": "1", "kafka.acks": "0"},
            "kafka.acks=0 does not go with delivery=exactly-once, or with txnAppId",
        ),
        ({"kafka.transactional.id": "a"}, "leave it out: writes are exactly once without it"),
    ],
)
def test_options_that_contradict_each_other_are_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        options(**given)
    assert told in str(refused.value)


def test_a_plain_batch_has_an_app_id_that_nobody_else_has() -> None:
    wanted = ExactlyOnce(None, None, 5)
    one, other = batch_identity(wanted), batch_identity(wanted)
    assert one.app_id != other.app_id
    assert one.is_plain
    assert (one.version, one.timeout_ms) == (0, 5)


def test_a_batch_with_a_version_has_the_user_s_app_id_and_a_run_of_its_own() -> None:
    wanted = ExactlyOnce("job", 7, 5)
    one, other = batch_identity(wanted), batch_identity(wanted)
    assert (one.app_id, one.version, one.is_plain) == ("app-job", 7, False)
    assert one.run != other.run


class Context:
    def __init__(self, **properties: str) -> None:
        self.properties = {name.replace("_", "."): value for name, value in properties.items()}

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 (Spark's name)
        return self.properties.get(name)


def test_a_micro_batch_is_the_query_s_write_of_that_number(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context(sql_streaming_queryId="q", streaming_sql_batchId="12", spark_jobGroup_id="run")
    monkeypatch.setattr(delivery, "_task_context", lambda: context)
    found = stream_identity(ExactlyOnce(None, None, 5))
    assert found == WriteIdentity("query-q", 12, "run", is_plain=False, timeout_ms=5)


def test_a_stream_s_task_that_is_not_told_its_query_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "_task_context", Context)
    with pytest.raises(SparklogError, match=r"queryId=None.*set delivery=at-least-once"):
        stream_identity(ExactlyOnce(None, None, 5))


def test_outside_of_a_task_there_is_no_stream_to_write_for() -> None:
    with pytest.raises(SparklogError, match="in Spark's tasks alone"):
        stream_identity(ExactlyOnce(None, None, 5))


def test_a_stream_takes_no_app_id_of_the_user_s() -> None:
    named = options(topic="t", delivery="exactly-once", txnAppId="a", txnVersion="1")
    with pytest.raises(ConfigError, match="a stream has the query's id"):
        stream_writer(TEXT, named)


def test_an_attempt_outside_of_spark_has_a_name_of_its_own() -> None:
    assert attempt_name() != attempt_name()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The APIs that a writer asks brokers for."""
    keys: list[int] = []

    class Cluster:
        def require(self, api_key: int) -> None:
            keys.append(api_key)

    monkeypatch.setattr(writer, "cluster_client", lambda _: Cluster())
    return keys


def test_a_driver_looks_whether_the_brokers_know_atomic_writes_before_anything_is_written(
    asked: list[int],
) -> None:
    batch_writer(TOPIC_AND_TEXT, options(), overwrite=False)
    assert asked == [10_000]
    batch_writer(TOPIC_AND_TEXT, options(delivery="at-least-once"), overwrite=False)
    assert asked == [10_000]


@pytest.mark.usefixtures("asked")
def test_the_driver_s_writer_and_its_tasks_have_the_same_write() -> None:
    made = batch_writer(TOPIC_AND_TEXT, options(), overwrite=False)
    sent: Any = pickle.loads(pickle.dumps(made))
    assert isinstance(sent, BatchWriter)
    assert sent._write == made._write
    message = Written(3, 1, made._write, 2**62)
    assert pickle.loads(pickle.dumps(message)) == message
