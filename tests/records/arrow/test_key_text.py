import datetime
import decimal
import math

import pyarrow as pa
import pytest

from sparklog.records.arrow.key_text import key_texts

NOON = datetime.datetime.fromisoformat("2024-02-29T12:00:00.000005")


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([-7, None], pa.int64(), ["-7", None]),
        ([True, False], pa.bool_(), ["true", "false"]),
        (
            [1.5, -0.0, math.nan, math.inf, -math.inf],
            pa.float64(),
            ["1.5", "-0.0", "NaN", "Infinity", "-Infinity"],
        ),
        ([decimal.Decimal("1.50")], pa.decimal128(9, 2), ["1.50"]),
        ([datetime.date(2024, 2, 29)], pa.date32(), ["2024-02-29"]),
        ([NOON], pa.timestamp("us"), ["2024-02-29T12:00:00.000005"]),
        ([NOON], pa.timestamp("us", "UTC"), ["2024-02-29T12:00:00.000005Z"]),
        (["a b"], pa.string(), ["a b"]),
        ([b"\xff"], pa.binary(), [b"\xff"]),
    ],
)
def test_a_keys_text_is_that_of_json_without_quotes(values, kind, texts):
    assert key_texts(pa.array(values, kind)).to_pylist() == texts
