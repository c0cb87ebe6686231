"""docs/types.md: both formats as they stand there, each type through Spark and a topic and back."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException

from sparklog.testing import InProcessCluster
from tests.pages import DOCS, blocks_of

pytestmark = pytest.mark.integration

PAGE = DOCS / "types.md"
FORMATS = {block.section: block.text for block in blocks_of(PAGE)}
WITH_FORMAT, BY_VARIANT = "JSON with a format of timestamps", "JSON by way of a variant"

INSTANTS = (
    "2024-03-31 02:30:00.123456Z", "2024-10-27 00:30:00.000001Z", "2024-10-27 01:30:00.000001Z",
    "1969-12-31 23:59:59.999999Z", "9999-12-30 23:59:59.999999Z",
)  # fmt: skip
"""Around changes of the clocks in Berlin, which give two instants one local time."""
DAYS = ("2024-02-29", "0001-01-01", "9999-12-31", "1582-10-04", "-0044-03-15")
BEFORE_STANDARD_TIME = ("1800-01-01 00:00:00.999999Z", "0001-01-02 00:00:00.000001Z")

VALUES = {
    "boolean": ["true", "false"],
    "tinyint": ["-128Y", "127Y"],
    "smallint": ["-32768S"],
    "int": ["-2147483648", "2147483647"],
    "bigint": ["9223372036854775807", "-9223372036854775807 - 1"],
    "float": ["1.1F", "float('NaN')", "float('-Infinity')", "float('-0.0')", "1.4E-45F", "3.4028234E38F"],
    "double": ["0.1D", "double('NaN')", "double('Infinity')", "double('-0.0')", "4.9E-324D",
               "1.7976931348623157E308D"],
    "decimal(38,18)": ["12345678901234567890.123456789012345678BD", "-0.000000000000000001BD", "1.100BD"],
    "decimal(38,0)": ["99999999999999999999999999999999999999BD"],
    "string": ["''", "'ü\\n\"\\\\,'", "'null'", "' a '", "char(0)", "'\\r\\n'", "'🦈'"],
    "binary": ["X''", "X'00FF80'"],
    "date": [f"date'{day}'" for day in DAYS],
    "timestamp": [f"timestamp'{instant}'" for instant in INSTANTS],
    "timestamp_ntz": [
        "timestamp_ntz'2024-03-31 02:30:00.123456'", "timestamp_ntz'1800-01-01 00:00:00.000001'"
    ],
    "array<int>": ["array(1, null)", "array()"],
    "array<timestamp>": [f"array(timestamp'{INSTANTS[0]}', null)"],
    "map<string,int>": ["map('a', 1, 'b', null)", "map()"],
    "struct<a:int,b:string>": ["named_struct('a', 1, 'b', null)", "named_struct('a', null, 'b', null)"],
    "array<struct<t:timestamp_ntz,d:decimal(10,2),m:map<string,date>>>": [
        "array(named_struct('t', timestamp_ntz'2024-03-31 02:30:00.123456', 'd', 1.1BD, 'm', "
        "map('x', date'2024-02-29')))"
    ],
    "variant": ["parse_json('{\"a\": [1, 2.5, \"x\", null]}')"],
}  # fmt: skip
"""Of each type, values that are easily lost; a null is among the rows of every one."""

INTERVALS = {
    "interval day to second": ["interval '-1 02:03:04.123456' day to second"],
    "interval year to month": ["interval '1-2' year to month"],
}

AS_TEXT = {"timestamp": "unix_micros(c)", "binary": "hex(c)", "variant": "schema_of_variant(c) || c"}
"""What tells any two values of a type apart, where a cast to string does not."""


@pytest.fixture(params=["UTC", pytest.param("Europe/Berlin", marks=pytest.mark.proof)])
def time_zone(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


_numbers = itertools.count(1)


class Way:
    """Frames through a topic of their own and back, by a format of the page."""

    def __init__(self, spark: Any, cluster: InProcessCluster) -> None:
        self._spark = spark
        self._brokers = {"kafka.bootstrap.servers": cluster.bootstrap_servers}

    def there_and_back(self, frame: Any, title: str) -> Any:
        code = re.sub(r'"(measured|observed)"', rf'"\1-{next(_numbers)}"', FORMATS[title])
        names = {"spark": self._spark, "brokers": self._brokers, "df": frame}
        exec(compile(code, str(PAGE), "exec"), names)
        return names["back"]

    def assert_same(self, values: dict[str, list[str]], title: str) -> None:
        """One column for each type, a row for each value, and one of nulls."""
        rows = max(len(expressions) for expressions in values.values()) + 1
        selects = [
            ", ".join(
                f"cast({expressions[row] if row < len(expressions) else 'null'} as {kind}) c{column}"
                for column, (kind, expressions) in enumerate(values.items())
            )
            for row in range(rows)
        ]
        frame = self._spark.sql(
            " union all ".join(f"select {row} n, {select}" for row, select in enumerate(selects))
        )
        back = self.there_and_back(frame, title)
        assert back.dtypes == frame.dtypes
        told = [
            re.sub(r"\bc\b", f"c{column}", AS_TEXT.get(kind, "string(c)"))
            for column, kind in enumerate(values)
        ]
        seen, expected = (each.orderBy("n").selectExpr("n", *told).collect() for each in (back, frame))
        assert [tuple(row) for row in seen] == [tuple(row) for row in expected]


@pytest.fixture
def way(spark: Any, cluster: InProcessCluster) -> Way:
    return Way(spark, cluster)


@pytest.mark.every_spark
@pytest.mark.parametrize("title", FORMATS)
@pytest.mark.usefixtures("time_zone")
def test_every_type_comes_back_as_it_was(way: Way, title: str) -> None:
    way.assert_same({**VALUES, **(INTERVALS if title == WITH_FORMAT else {})}, title)


def test_timestamps_before_standard_time_come_back_with_the_format_and_in_utc(
    way: Way, time_zone: str
) -> None:
    old = {"timestamp": [f"timestamp'{instant}'" for instant in BEFORE_STANDARD_TIME]}
    way.assert_same(old, WITH_FORMAT)
    if time_zone == "UTC":
        way.assert_same(old, BY_VARIANT)
    else:
        with pytest.raises(AssertionError):
            way.assert_same(old, BY_VARIANT)


def test_json_alone_cuts_timestamps_as_the_page_says(spark: Any) -> None:
    text = "to_json(struct(timestamp'2024-03-31 02:30:00.123456Z' t))"
    assert spark.sql(f"select {text} v").first().v == '{"t":"2024-03-31T02:30:00.123Z"}'


def test_what_other_readers_find_is_what_the_page_says(way: Way, spark: Any) -> None:
    frame = spark.sql("select timestamp'2024-03-31 02:30:00.123456Z' t")
    found = re.findall(r"`(2024-[^`]+)`", PAGE.read_text())
    for title, text in zip((WITH_FORMAT, BY_VARIANT), found, strict=True):
        names: dict[str, Any] = {"spark": spark, "brokers": {}, "df": frame}
        exec(compile(FORMATS[title].partition("df.select")[0], str(PAGE), "exec"), names)
        assert frame.select(names["value"]).first().value == f'{{"t":"{text}"}}'


@pytest.mark.parametrize("title", FORMATS)
def test_other_keys_of_maps_are_refused_and_entries_come_back(way: Way, spark: Any, title: str) -> None:
    frame = spark.sql("select map(1, 'x', 2, null) m")
    with pytest.raises(PySparkException, match="DATATYPE_MISMATCH"):
        way.there_and_back(frame, title).collect()
    entries = way.there_and_back(frame.selectExpr("map_entries(m) e"), title)
    assert entries.selectExpr("map_from_entries(e) m").first().m == {1: "x", 2: None}


def test_intervals_are_refused_by_way_of_a_variant(way: Way, spark: Any) -> None:
    with pytest.raises(PySparkException, match="DATATYPE_MISMATCH"):
        way.there_and_back(spark.sql("select interval '1' day i"), BY_VARIANT)


@pytest.mark.parametrize("title", FORMATS)
def test_what_a_variant_has_beyond_json_comes_back_as_text(way: Way, spark: Any, title: str) -> None:
    frame = spark.sql("select to_variant_object(struct(timestamp'2024-03-31 02:30:00.123456Z' t)) v")
    back = way.there_and_back(frame, title).selectExpr("schema_of_variant(v) s", "string(v) v").first()
    assert tuple(back) == ("OBJECT<t: STRING>", '{"t":"2024-03-31 02:30:00.123456+00:00"}')
