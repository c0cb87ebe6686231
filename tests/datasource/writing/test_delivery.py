"""The options of an atomic write, and which write a task's rows belong to."""

import pickle
from typing import Any

import pytest

from pyspark_sparklog.write_options import WriteOptions
from pyspark_sparklog.writer import BatchWriter, Written, batch_writer, stream_writer
from pyspark_sparklog.writing import delivery
from pyspark_sparklog.writing.delivery import ExactlyOnce, batch_identity, stream_identity
from sparklog.client.transactions.writes.identity import WriteIdentity
from sparklog.model.errors import ConfigError, SparklogError
from tests.datasource.test_writer import TEXT


def options(**more: str) -> WriteOptions:
    return WriteOptions.of({"kafka.bootstrap.servers": "127.0.0.1:1", **more})


def exactly_once(**more: str) -> ExactlyOnce | None:
    return options(delivery="exactly-once", **more).exactly_once


def test_a_write_is_at_least_once_unless_it_asks_for_more() -> None:
    assert options().exactly_once is None
    assert options(delivery="at-least-once").exactly_once is None
    assert exactly_once() == ExactlyOnce(None, None, 300_000)
    assert exactly_once(txnAppId="job", txnVersion="7", **{"kafka.transaction.timeout.ms": "900"}) == (
        ExactlyOnce("job", 7, 900)
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"delivery": "twice"}, "option delivery='twice': must be exactly-once or at-least-once"),
        ({"txnAppId": "a", "txnVersion": "1"}, "txnAppId and txnVersion need delivery=exactly-once"),
        ({"delivery": "exactly-once", "txnAppId": "a"}, "belong together"),
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
        ({"kafka.transactional.id": "a"}, "set delivery=exactly-once instead, and txnAppId"),
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


def test_the_driver_s_writer_and_its_tasks_have_the_same_write() -> None:
    made = batch_writer(TEXT.add("topic", "string"), options(delivery="exactly-once"), overwrite=False)
    sent: Any = pickle.loads(pickle.dumps(made))
    assert isinstance(sent, BatchWriter)
    assert sent._write == made._write
    message = Written(3, 1, made._write, 2**62)
    assert pickle.loads(pickle.dumps(message)) == message
