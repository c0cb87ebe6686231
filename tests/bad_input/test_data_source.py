"""Reads and writes that cannot be: the data source, called as Spark calls it, in less time.

That Spark hands these messages on is for test_spark.py.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, MapType, NullType, StringType, StructType

import sparklog_datasource.reads.discovery
from pyspark_sparklog import DefaultSource
from sparklog.testing import InProcessCluster
from tests.waiting import until

Case = Callable[..., str]
Refused = Callable[[Callable[[], Any]], Exception]

NOWHERE = "127.0.0.1:1"
TYPES = {
    "string": StringType(),
    "bigint": LongType(),
    "int": IntegerType(),
    "void": NullType(),
    "map": MapType(StringType(), BinaryType()),
}


class Source:
    """What Spark does with options, rows and a schema."""

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def source(self, options: dict[str, str]) -> DefaultSource:
        given = {"kafka.bootstrap.servers": self.servers, **options}
        return DefaultSource({name.lower(): text for name, text in given.items() if text is not None})

    def read(self, **options: str) -> list[Any]:
        source = self.source(options)
        reader = source.reader(source.schema())
        return [rows for partition in reader.partitions() for rows in reader.read(partition)]

    def stream(self, **options: str) -> Any:
        source = self.source(options)
        return source.streamReader(source.schema())

    def write(self, schema: str, *rows: Any, overwrite: bool = False, **options: str) -> None:
        kind = StructType()
        for column in schema.split(", "):
            name, _, type_name = column.partition(" ")
            kind.add(name, TYPES[type_name])
        writer = self.source(options).writer(kind, overwrite)
        columns = zip(*rows, strict=True)
        arrow = to_arrow_schema(kind)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, arrow, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=arrow)
        try:
            message = writer.write(iter([batch]))
        except Exception:
            writer.abort([None])
            raise
        writer.commit([message])


@pytest.fixture
def source(brokers: InProcessCluster, monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setattr(sparklog_datasource.reads.discovery, "NEW_TOPIC_WAIT_MS", 100)
    return Source(brokers.bootstrap_servers)


# Reading


READS = [
    ("an unknown topic", {"subscribe": "evnts"}, ""),
    ("an invalid topic name", {"subscribe": "my events"}, ""),
    (
        "neither `subscribe` nor `subscribePattern` nor `assign`",
        {},
        "",
    ),
    ("two ways to say what to read", {"subscribe": "t", "assign": '{"t":[0]}'}, ""),
    (
        "a misspelt option",
        {"subscribe": "t", "startingOfset": "earliest"},
        "[the list](spark.md#reading)",
    ),
    (
        "a misspelt option of Kafka's clients",
        {"subscribe": "t", "kafka.isolaton.level": "read_uncommitted"},
        "",
    ),
    (
        "no `bootstrap.servers`",
        {"subscribe": "t", "kafka.bootstrap.servers": None},
        "any broker of the cluster",
    ),
    (
        "`bootstrap.servers` without a port",
        {"subscribe": "t", "kafka.bootstrap.servers": "broker-1"},
        "",
    ),
    (
        "brokers that are not there",
        {
            "subscribe": "t",
            "kafka.bootstrap.servers": NOWHERE,
            "kafka.default.api.timeout.ms": "200",
        },
        "or let the port through; reads try for `kafka.default.api.timeout.ms` (60,000)",
    ),
    (
        "a pattern that is none",
        {"subscribePattern": "events-(eu|us"},
        "",
    ),
    (
        "`startingOffsets` misspelt",
        {"subscribe": "t", "startingOffsets": "earlist"},
        "",
    ),
    (
        "`startingOffsets` that is cut off",
        {"subscribe": "t", "startingOffsets": '{"t":{"0":2'},
        "mind the shell's quotes",
    ),
    (
        "a partition that is named twice",
        {"subscribe": "t", "startingOffsets": '{"t":{"0":1},"t":{"1":0}}'},
        "",
    ),
    (
        "a negative offset",
        {"subscribe": "t", "startingOffsets": '{"t":{"0":-7,"1":0}}'},
        "",
    ),
    (
        "an offset beyond every log",
        {"subscribe": "t", "startingOffsets": '{"t":{"0":99999999999999999999,"1":0}}'},
        "",
    ),
    (
        "an offset that is no number",
        {"subscribe": "t", "startingOffsets": '{"t":{"0":"first","1":0}}'},
        "",
    ),
    (
        "offsets for some of the partitions",
        {"subscribe": "t", "startingOffsets": '{"t":{"0":2}}'},
        "or read fewer with `assign`",
    ),
    (
        "other partitions at the start than at the end",
        {"subscribe": "t", "startingOffsets": '{"t":{"0":1}}', "endingOffsets": '{"t":{"0":2,"1":0}}'},
        "",
    ),
    (
        "a start beyond the end of the log",
        {"subscribe": "t", "startingOffsets": '{"t":{"0":9,"1":0}}'},
        "the topic may have been created again since",
    ),
    (
        "an end beyond the end of the log",
        {"subscribe": "t", "endingOffsets": '{"t":{"0":9,"1":0}}'},
        "or end earlier",
    ),
    (
        "a batch read that starts at its end",
        {"subscribe": "t", "startingOffsets": "latest"},
        "",
    ),
    (
        "a timestamp that no record is as late as",
        {"subscribe": "t", "startingTimestamp": "32503680000000"},
        "",
    ),
    (
        "a count that is none",
        {"subscribe": "t", "minPartitions": "0"},
        "",
    ),
    (
        "a task of too few bytes",
        {"subscribe": "t", "bytesPerTask": "1k"},
        "such as 64m",
    ),
    (
        "offsets that shall be reported to the group of `kafka.group.id`",
        {"subscribe": "t", "reportAs": "billing", "kafka.group.id": "billing"},
        "",
    ),
    (
        "a `valueFormat` that there is not",
        {"subscribe": "t", "valueFormat": "json"},
        "string, and `from_json`",
    ),
    (
        "`valueFormat.errors` without text",
        {"subscribe": "t", "valueFormat.errors": "null"},
        "",
    ),
    (
        "an option of Kafka's consumer that cannot be honoured",
        {"subscribe": "t", "kafka.auto.offset.reset": "earliest"},
        "",
    ),
    (
        "a login without its mechanism",
        {"subscribe": "t", "kafka.security.protocol": "SASL_SSL"},
        "[security](spark.md#encryption-and-logins)",
    ),
    (
        "a login without a user",
        {"subscribe": "t", "kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"},
        "",
    ),
    (
        "a misspelt option of encryption",
        {"subscribe": "t", "kafka.security.protocol": "SSL", "kafka.ssl.trustore.location": "ca.pem"},
        "",
    ),
    ("a column that is not there", {"subscribe": "t", "columns": "offset, vlaue"}, ""),
    ("a field within a column", {"subscribe": "t", "columns": "key, headers.key"}, ""),
    ("a column twice", {"subscribe": "t", "columns": "key, key"}, ""),
    ("no column", {"subscribe": "t", "columns": ""}, ""),
    (
        "columns, and headers beside them",
        {"subscribe": "t", "columns": "key", "includeHeaders": "true"},
        "",
    ),
    (
        "a key without its certificate",
        {"subscribe": "t", "kafka.security.protocol": "SSL", "kafka.ssl.keystore.key": "${env:KEY}"},
        "",
    ),
]


@pytest.mark.parametrize(("wrong", "options", "do"), READS, ids=[row[0] for row in READS])
def test_a_read_is_refused(
    wrong: str, options: dict[str, str], do: str, source: Source, case: Case, refused: Refused
) -> None:
    case(wrong, "Spark read", refused(lambda: source.read(**options)), do)


def test_a_table_with_options(source: Source, case: Case, refused: Refused) -> None:
    given = {"subscribe": "t", "option.subscribe": "t", "provider": "sparklog", "owner": "me"}
    case(
        "`CREATE TABLE … USING sparklog OPTIONS (…)`",
        "Spark read",
        refused(source.source(given).schema),
        "[SQL](spark.md#sql)",
    )


def test_a_value_that_is_no_text(
    source: Source, brokers: InProcessCluster, case: Case, refused: Refused
) -> None:
    brokers.create_topic("avro")
    brokers.produce("avro", ["a", b"\x00\x00\x00\x00\x2a\xfe"])
    case(
        "a value that is no text, read with `valueFormat` string",
        "Spark read",
        refused(lambda: source.read(subscribe="avro", valueFormat="string")),
    )


def test_an_offset_that_retention_has_deleted(
    source: Source, brokers: InProcessCluster, case: Case, refused: Refused
) -> None:
    brokers.create_topic("aged", configs={"segment.bytes": "100", "retention.bytes": "1"})
    for value in ("1", "2", "3"):
        brokers.produce("aged", [value * 100])
    until(lambda: brokers.partitions("aged")[0].log_start_offset >= 2, "retention")
    case(
        "an offset whose record retention has deleted",
        "Spark read",
        refused(lambda: source.read(subscribe="aged", startingOffsets='{"aged":{"0":0}}')),
        "raise `retention.ms` if readers are slow",
    )


# Writing


WRITES = [
    (
        "an unknown topic, while `auto.create.topics.enable` is false",
        "value string",
        ("x",),
        {"topic": "evnts", "kafka.max.block.ms": "100"},
        "",
    ),
    (
        "an unknown topic in column `topic`, while `auto.create.topics.enable` is false",
        "value string, topic string",
        ("x", "evnts"),
        {"kafka.max.block.ms": "100"},
        "",
    ),
    ("an invalid topic name", "value string", ("x",), {"topic": "my events"}, ""),
    (
        "an invalid topic name in column `topic`",
        "value string, topic string",
        ("x", "my events"),
        {},
        "",
    ),
    (
        "a null in the topic column",
        "value string, topic string",
        ("x", None),
        {},
        "nothing of this Spark batch was written",
    ),
    ("no topic at all", "value string", ("x",), {}, ""),
    ("no value column", "key string", ("x",), {"topic": "t"}, ""),
    (
        "a column in the wrong case",
        "Value string",
        ("x",),
        {"topic": "t"},
        "",
    ),
    ("a value of the wrong type", "value bigint", (1,), {"topic": "t"}, ""),
    (
        "a key of the wrong type",
        "key int, value string",
        (1, "x"),
        {"topic": "t"},
        "how it is cast decides the partition",
    ),
    (
        "a partition of the wrong type",
        "value string, partition bigint",
        ("x", 1),
        {"topic": "t"},
        "",
    ),
    (
        "headers of the wrong type",
        "value string, headers map",
        ("x", None),
        {"topic": "t"},
        "",
    ),
    (
        "a partition that the topic does not have",
        "value string, partition int",
        ("x", 7),
        {"topic": "t"},
        "",
    ),
    (
        "a row larger than `message.max.bytes`",
        "value string",
        ("x" * 2_000_000,),
        {"topic": "t"},
        "nothing of this Spark batch was written",
    ),
    (
        "a misspelt option",
        "value string",
        ("x",),
        {"topicc": "t"},
        "[the list](spark.md#writing)",
    ),
    (
        "acks that there are not",
        "value string",
        ("x",),
        {"topic": "t", "kafka.acks": "2"},
        "`min.insync.replicas` of the topic says how many are all",
    ),
    (
        "brokers that are not there",
        "value string",
        ("x",),
        {"topic": "t", "kafka.bootstrap.servers": NOWHERE, "kafka.max.block.ms": "200"},
        "",
    ),
]


@pytest.mark.parametrize(("wrong", "schema", "row", "options", "do"), WRITES, ids=[row[0] for row in WRITES])
def test_a_write_is_refused(
    wrong: str,
    schema: str,
    row: tuple[Any, ...],
    options: dict[str, str],
    do: str,
    source: Source,
    case: Case,
    refused: Refused,
) -> None:
    case(wrong, "Spark write", refused(lambda: source.write(schema, row, **options)), do)


def test_a_log_is_not_overwritten(source: Source, case: Case, refused: Refused) -> None:
    case(
        '`mode("overwrite")`',
        "Spark write",
        refused(lambda: source.write("value string", ("x",), overwrite=True, topic="t")),
        "or delete the topic and create it",
    )


def test_too_few_replicas_in_sync(
    source: Source, brokers: InProcessCluster, case: Case, refused: Refused
) -> None:
    brokers.create_topic("strict", configs={"min.insync.replicas": "3"})
    brokers.kill(3)
    options = {"topic": "strict", "kafka.delivery.timeout.ms": "500"}
    case(
        "fewer replicas in sync than `min.insync.replicas`",
        "Spark write",
        refused(lambda: source.write("value string", ("x",), **options)),
        "the write tries for `kafka.delivery.timeout.ms` (120,000)",
    )
    brokers.revive(3)
    brokers.wait_for_isr("strict", 3)
    brokers.wait_for_isr("kept", 3)
    source.write("value string", ("x",), **options)
    assert [record.value for record in brokers.consume("strict")] == [b"x"]


# Typed topics


TYPED_WRITES = [
    ("a column that the typed topic lacks", "id bigint, extra int", (1, 1), {}, ""),
    ("a column of a typed topic in another case", "ID bigint", (1,), {}, ""),
    ("a type that does not widen to the topic's", "id string", ("1",), {}, ""),
    ("a null under NOT NULL", "id bigint", (None,), {}, "nothing of this Spark batch was written"),
    ("a NOT NULL column that the frame lacks", "note string", ("x",), {}, ""),
    ("a type that no typed topic has", "id void", (None,), {"topic": "voids", "createTopic": "typed"}, ""),
    ("columns for a topic that is not there", "id bigint", (1,), {"topic": "evnts"}, ""),
    ("`createTopic` for an untyped topic", "id bigint", (1,), {"topic": "t", "createTopic": "typed"}, ""),
    ("`createTopic` that is not typed", "id bigint", (1,), {"createTopic": "plain"}, ""),
    ("`createTopic.key` alone", "id bigint", (1,), {"createTopic.key": "id"}, ""),
    (
        "a typed topic in column `topic`",
        "value string, topic string",
        ("x", "columns-refused"),
        {"topic": None},
        "",
    ),
]


@pytest.fixture(scope="module")
def typed(brokers: InProcessCluster) -> str:
    brokers.create_topic("columns-refused", schema="id bigint NOT NULL, mag double, note string")
    return "columns-refused"


@pytest.mark.parametrize(
    ("wrong", "schema", "row", "options", "do"), TYPED_WRITES, ids=[row[0] for row in TYPED_WRITES]
)
def test_a_write_of_columns_is_refused(
    wrong: str,
    schema: str,
    row: tuple[Any, ...],
    options: dict[str, str],
    do: str,
    source: Source,
    typed: str,
    case: Case,
    refused: Refused,
) -> None:
    given = {"topic": typed, **options}
    case(wrong, "Spark write", refused(lambda: source.write(schema, row, **given)), do)


TYPED_READS = [
    ("typed and untyped topics in one read", {"subscribe": "columns-refused,t"}, ""),
    ("`includeHeaders` of a typed topic", {"includeHeaders": "true"}, ""),
    ("`includeMetadata` of an untyped topic", {"subscribe": "t", "includeMetadata": "true"}, ""),
    ("`where` of an untyped topic", {"subscribe": "t", "where": "value = 'x'"}, ""),
    ("a condition on a column that is not there", {"where": "mga > 5"}, ""),
    ("a condition with another type", {"where": "mag > 'strong'"}, ""),
    ("a condition with over a thousand values", {"where": " or ".join(["id = 1"] * 1_001)}, ""),
    ("a condition with a text in double quotes", {"where": 'note = "x"'}, ""),
    ("a condition with a subquery", {"where": "id in (select 1)"}, ""),
    ("a condition with a function", {"where": "abs(mag) > 5"}, ""),
]


@pytest.mark.parametrize(("wrong", "options", "do"), TYPED_READS, ids=[row[0] for row in TYPED_READS])
def test_a_read_of_columns_is_refused(
    wrong: str, options: dict[str, str], do: str, source: Source, typed: str, case: Case, refused: Refused
) -> None:
    given = {"subscribe": typed, **options}
    case(wrong, "Spark read", refused(lambda: source.read(**given)), do)
