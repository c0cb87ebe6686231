"""The Spark data source ``format("sparklog")``, which Spark finds by itself.

    servers = {"bootstrap.servers": "127.0.0.1:9092"}
    rows = df.selectExpr("cast(id as string) as key", "to_json(to_variant_object(struct(*))) as value")
    rows.write.format("sparklog").options(**servers, topic="events").mode("append").save()

    events = spark.read.format("sparklog").options(**servers, subscribe="events", valueFormat="string")
    events.load().show()                                  # spark.readStream for a stream

Options have the names of Spark's Kafka connector, in any case.

    both   bootstrap.servers (required), includeHeaders, and kafka.* of Kafka's clients
    reads  subscribe, subscribePattern or assign (one of them is required); startingOffsets, endingOffsets,
           startingTimestamp, endingTimestamp, startingOffsetsByTimestamp, endingOffsetsByTimestamp,
           startingOffsetsByTimestampStrategy; keyFormat, valueFormat, keyFormat.errors, valueFormat.errors;
           columns; where, includeMetadata (typed topics);
           failOnDataLoss; minPartitions, maxRecordsPerPartition, bytesPerTask (batch);
           maxOffsetsPerTrigger, minOffsetsPerTrigger, maxTriggerDelay, reportOffsets, reportAs (stream)
    writes topic (or a column of that name), delivery, txnAppId, txnVersion; createTopic=typed,
           createTopic.partitions, createTopic.replicationFactor, createTopic.key, createTopic.timestamp;
           mergeSchema

A typed topic has the DataFrame's own columns, with their types:

    df.write.format("sparklog").options(**servers, topic="quakes", createTopic="typed").mode("append").save()
    spark.read.format("sparklog").options(**servers, subscribe="quakes").load()

Beside the source there are functions for streaming queries, ``lag``, ``lag_listener`` and ``progress``,
``create_topic`` and ``alter_topic`` for topics with columns, ``needed_columns`` for reads of few of them, and
``register`` for sessions and threads that do not find the source.

Every option, column and function:   docs/spark.md
Topics with columns:                 docs/typed-topics.md
What is refused, and what to do:     docs/bad-input.md

Spark imports every top-level module named ``pyspark_…``, and one that fails hides *all* Python data sources.
So this one imports Spark's base class alone, and the others when they are needed.
"""

from collections.abc import Callable, Mapping
from typing import Any, TextIO

from pyspark.sql.datasource import DataSource

__all__ = [
    "DefaultSource", "alter_topic", "create_topic", "lag", "lag_listener", "needed_columns", "progress",
    "register",
]  # fmt: skip


def __dir__() -> list[str]:
    """What completion offers."""
    return list(__all__)


class DefaultSource(DataSource):  # type: ignore[misc]  # Spark's has no types
    """The source under the name ``sparklog``; Spark makes one per use and pickles it between processes."""

    @classmethod
    def name(cls) -> str:
        return "sparklog"

    def schema(self) -> Any:
        """The rows' type, as the cluster knows it; refuses options that no read takes, and tables with
        options.
        """
        from sparklog_datasource.options.option_parsing import is_of_new_table
        from sparklog_datasource.reads.read_options import ReadOptions
        from sparklog_datasource.reads.topic_form import form_at_load, spark_row_type
        from sparklog_datasource.rows.form import RowForm

        if is_of_new_table(self.options):
            return spark_row_type(RowForm())
        return spark_row_type(form_at_load(ReadOptions.of_any(self.options)))

    def reader(self, schema: Any) -> Any:
        """A batch read."""
        from sparklog_datasource.batch.batch_reader import BatchReader
        from sparklog_datasource.reads.read_options import ReadOptions
        from sparklog_datasource.reads.topic_form import with_form

        return BatchReader(with_form(ReadOptions.of_batch(self.options), schema))

    def streamReader(self, schema: Any) -> Any:  # noqa: N802 (Spark's name)
        """A micro-batch read."""
        from sparklog_datasource.stream.stream_reader import stream_reader

        return stream_reader(self.options, schema)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        """A batch write."""
        from sparklog_datasource.writing.write_options import WriteOptions
        from sparklog_datasource.writing.writer import batch_writer

        return batch_writer(schema, WriteOptions.of(self.options), overwrite=overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802 (Spark's name)
        """A streaming write; ``overwrite`` is output mode Complete, which appends, as with Kafka's sink."""
        from sparklog_datasource.writing.write_options import WriteOptions
        from sparklog_datasource.writing.writer import stream_writer

        return stream_writer(schema, WriteOptions.of(self.options))


def register(spark: Any) -> None:
    """Register ``format("sparklog")`` with a session that did not find it by itself.

    Call it if the package was added by ``--py-files`` (after the file was added), and in every new Python
    thread that writes: Spark looks a source up in the thread's active session, which a new thread lacks, and
    fails with DATA_SOURCE_NOT_FOUND. Further calls are harmless.
    """
    spark.dataSource.register(DefaultSource)
    java_session = getattr(spark, "_jsparkSession", None)
    if java_session is not None:  # a Spark Connect session has none, and needs none
        spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(java_session)


def create_topic(
    name: str,
    schema: Any,
    *,
    options: Mapping[str, str],
    key: str = "",
    timestamp: str = "",
    partitions: int = -1,
    replication_factor: int = -1,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create a typed topic: one with columns; returns when its leaders serve it.

    ``schema`` is that of a DataFrame, ``df.schema``, or text in Spark's DDL. ``key`` and ``timestamp`` name
    columns. ``options`` say which cluster: {"bootstrap.servers": "127.0.0.1:9092"}. -1 stands for the
    cluster's default. ``configs`` are settings of the topic.
    """
    from sparklog_datasource.writing.new_typed_topic import create_typed_topic

    settings = dict(configs or {})
    create_typed_topic(name, schema, options, key, timestamp, partitions, replication_factor, settings)


def alter_topic(name: str, *changes: str, options: Mapping[str, str]) -> int:
    """Change the columns of a typed topic, all together or not at all; returns the new version's number.

        alter_topic("quakes", "add-column depth double", "rename-column mag=magnitude", options=servers)

    ``changes`` are those of ``sparklog topics alter``: add-column PATH TYPE, drop-column PATH,
    rename-column PATH=NAME, widen-column PATH TYPE, drop-not-null COLUMN; a PATH is that of Spark's ALTER
    TABLE, such as s.a or a.element.b. ``options`` say which cluster: {"bootstrap.servers": "127.0.0.1:9092"}.
    Running queries go on with the columns that they were planned with. SchemaError for a change that is not
    allowed, KafkaError if another change was made at the same time.
    """
    from sparklog_datasource.writing.altered_topic import alter_typed_topic

    return alter_typed_topic(name, changes, options)


def needed_columns(frame: Any) -> list[str]:
    """Print and return the option ``columns`` that each sparklog read of a frame could have.

        >>> quakes = spark.read.format("sparklog").options(**servers, subscribe="quakes").load()
        >>> needed_columns(quakes.where("mag > 5").select("id"))
        .option("columns", "id, mag")
        ['id, mag']

    Spark does not tell a Python source which columns it needs, but its optimised plan shows them. The frame
    may be of a batch or a stream, not of Spark Connect; SparklogError without a read of format sparklog.
    """
    from sparklog_datasource.reads.needed import needed_of

    found = needed_of(frame)
    for columns in found:
        print(f'.option("columns", "{columns}")')
    return found


def lag(query: Any) -> dict[str, str]:
    """How far a streaming query lags its logs, as of its last progress report.

    ``{"minOffsetsBehindLatest": "0", "maxOffsetsBehindLatest": "9", "avgOffsetsBehindLatest": "4.5"}`` over
    all its partitions: the names and form of the Kafka connector's metrics. Empty before the first report.
    """
    from sparklog_datasource.monitoring.lag import lag_of_query

    return lag_of_query(query)


def lag_listener(report: Callable[[str, dict[str, str]], None]) -> Any:
    """A listener for ``spark.streams.addListener`` that calls ``report(query_id, lag)`` at each progress."""
    from sparklog_datasource.monitoring.lag import LagListener

    return LagListener(report)


def progress(query: Any, file: TextIO | None = None) -> Any:
    """Draw a streaming query's rows, rate and lag until it ends; returns at once.

    In a notebook it is a bar below the cell, in a terminal a bar in one line of standard error, or of
    ``file``. What is no terminal gets plain lines. The result has ``stop()``, which ends the drawing and not
    the query, and ``wait(timeout_s=None)``, which waits for the last line.
    """
    from sparklog_datasource.monitoring.pictures import picture_of
    from sparklog_datasource.monitoring.query_progress import Progress, name_of_query

    return Progress(query, picture_of(name_of_query(query), file))
