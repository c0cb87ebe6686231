"""What a writer refuses before it asks anybody, and what a task without rows costs."""

import pickle
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from sparklog.model.errors import ConfigError, ErrorCode, KafkaError
from sparklog_datasource.writing import task, typed_target
from sparklog_datasource.writing import writer as module
from sparklog_datasource.writing.task import Written, write_task
from sparklog_datasource.writing.topics import existing_topic
from sparklog_datasource.writing.write_options import WriteOptions
from sparklog_datasource.writing.writer import StreamWriter, batch_writer, stream_writer

TEXT = StructType([StructField("value", StringType())])
NUMBER = StructType([StructField("value", LongType())])


def options(**more: str) -> WriteOptions:
    return WriteOptions.of({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", **more})


@pytest.fixture
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> None:
        pytest.fail("the cluster was asked")

    for asking in (module, task, typed_target):
        monkeypatch.setattr(asking, "cluster_client", refuse)


@pytest.mark.usefixtures("_no_cluster")
def test_overwriting_is_refused_for_batches() -> None:
    with pytest.raises(ConfigError, match=r"save mode overwrite is not allowed.*use mode\('append'\)"):
        batch_writer(TEXT, options(), overwrite=True)


@pytest.mark.usefixtures("_no_cluster")
def test_a_wrong_column_of_rows_that_name_their_topic_is_refused_on_both_paths() -> None:
    named = WriteOptions.of({"kafka.bootstrap.servers": "127.0.0.1:1"})
    schema = StructType([*NUMBER.fields, StructField("topic", StringType())])
    with pytest.raises(ConfigError, match="column 'value' has type bigint"):
        batch_writer(schema, named, overwrite=False)
    with pytest.raises(ConfigError, match="column 'value' has type bigint"):
        stream_writer(schema, named)


@pytest.mark.usefixtures("_no_cluster")
def test_a_task_without_rows_asks_nobody() -> None:
    empty = pa.record_batch({"value": pa.array([], pa.string())})
    assert write_task(options(), iter([empty, empty])) == Written(0, 0)


@pytest.mark.usefixtures("_no_cluster")
def test_stream_writers_are_made_often_and_so_ask_nobody() -> None:
    made = stream_writer(TEXT, options())
    assert isinstance(pickle.loads(pickle.dumps(made)), StreamWriter)
    made.commit([Written(3, 1), None], 7)
    made.abort([None], 7)


def test_a_commit_message_survives_the_way_to_the_driver() -> None:
    assert pickle.loads(pickle.dumps(Written(3, 1))) == Written(3, 1)


def test_a_topic_that_does_not_come_into_being_is_told_with_a_remedy() -> None:
    class Cluster:
        def metadata(self, *_: Any, **__: Any) -> None: ...

        def topic(self, name: str, *, timeout_ms: int) -> None:
            assert timeout_ms == 70
            raise KafkaError(ErrorCode.unknown_topic_or_partition, "there is no such topic")

    given = options(**{"kafka.max.block.ms": "70"})
    with pytest.raises(KafkaError, match=r"cannot write to topic 't': there is no such topic; create it"):
        existing_topic(Cluster(), "t", given)  # type: ignore[arg-type]
