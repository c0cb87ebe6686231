"""A typed topic with a column of each type, two rows of it, and what Kafka's clients read of them."""

import datetime
import decimal
import math

import pyarrow as pa

from sparklog.testing import InProcessCluster

DDL = """`the "id"` bigint NOT NULL, ok boolean, tiny tinyint, small smallint, n int, f float, d double,
    price decimal(9,2), name string, raw binary, day date, at timestamp, local timestamp_ntz,
    tags array<string>, sizes map<string, double>, place struct<x: double, names: array<string>>"""
AT = datetime.datetime.fromisoformat("2024-02-29T12:00:00.000005+00:00")
ROW = {
    'the "id"': 7,
    "ok": True,
    "tiny": -128,
    "small": -32768,
    "n": 2**31 - 1,
    "f": 0.1,
    "d": -0.0,
    "price": decimal.Decimal("1.50"),
    "name": 'q"\\\n\x01ü😀',
    "raw": b"\x00\xffa",
    "day": AT.date(),
    "at": AT,
    "local": AT.replace(tzinfo=None),
    "tags": ["a", None, ""],
    "sizes": [("a", math.nan), ("b", None)],
    "place": {"x": None, "names": []},
}
LINE = (
    r'{"the \"id\"":7,"ok":true,"tiny":-128,"small":-32768,"n":2147483647,"f":0.1,"d":-0.0,"price":1.50,'
    r'"name":"q\"\\\n\u0001ü😀","raw":"AP9h","day":"2024-02-29","at":"2024-02-29T12:00:00.000005Z",'
    r'"local":"2024-02-29T12:00:00.000005","tags":["a",null,""],"sizes":{"a":"NaN","b":null},'
    r'"place":{"names":[]}}'
)
ROWS = [(0, b"7", LINE.encode()), (1, b"8", b'{"the \\"id\\"":8}')]
TIMES_MS = [1_709_208_000_000, None]


def create_with_rows(cluster: InProcessCluster, topic: str) -> None:
    """Write one row of all values, and one of nulls."""
    cluster.create_topic(topic, schema=DDL, key='the "id"', timestamp="at")
    kinds = {"tiny": pa.int8(), "small": pa.int16(), "n": pa.int32(), "f": pa.float32()}
    kinds |= {"price": pa.decimal128(9, 2), "sizes": pa.map_(pa.string(), pa.float64())}
    kinds["place"] = pa.struct([("x", pa.float64()), ("names", pa.list_(pa.string()))])
    table = pa.table({name: pa.array([value, None], kinds.get(name)) for name, value in ROW.items()})
    cluster.produce(topic, table.set_column(0, 'the "id"', pa.array([7, 8])))
