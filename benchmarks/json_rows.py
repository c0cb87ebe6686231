"""What a broker pays for typed rows as JSON: CPU of one process for a batch of 20 columns.

    python benchmarks/json_rows.py [--rounds 7]

The batch is read, checked, and made into records, as for a fetch of a Kafka client; beside that an object for
each row and ``json.dumps``, of rows that are read already. Rounds take turns, and what counts is the ratio.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from sparklog.model.schema.new_schema import new_schema
from sparklog.records.arrow.arrow_types import columns_of_arrow
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.arrow.written_rows import WrittenRows
from sparklog.records.bridge import numbers
from sparklog.records.envelope import Compression
from sparklog.records.json.json_batches import json_batches

ROWS: Final = 8_192
LARGE: Final = 1 << 30


def rows_of_20_columns() -> pa.RecordBatch:
    """Six numbers, six fractions, five texts, two times, a truth; a tenth of one column of each is null."""
    drawn = np.random.default_rng(1)
    columns = {f"n{nth}": numbers(drawn.integers(0, 1 << 40, ROWS)) for nth in range(6)}
    columns |= {f"x{nth}": pa.array(drawn.random(ROWS) * 1_000) for nth in range(6)}
    columns |= {
        f"text{nth}": pa.array([f"value {n}" for n in drawn.integers(0, 999, ROWS)]) for nth in range(5)
    }
    times = drawn.integers(0, 1 << 50, (2, ROWS))
    columns |= {f"at{nth}": numbers(times[nth]).view(pa.timestamp("us", "UTC")) for nth in range(2)}
    columns["ok"] = pa.array(drawn.random(ROWS) > 0.5)
    for name in ("n1", "x1", "text1", "at1"):
        kept = columns[name].to_pylist()
        columns[name] = pa.array(
            [None if one > 0.9 else value for one, value in zip(drawn.random(ROWS), kept, strict=True)],
            columns[name].type,
        )
    return pa.record_batch(columns)


def spent_s(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    rows = rows_of_20_columns()
    columns = columns_of_arrow(rows.schema)
    topic = TopicColumns(new_schema(columns, "n0", "at0"))
    written = WrittenRows.fitting(topic.newest, columns)
    batch = written.encode(written.rows(rows), now_ms=1, compression=Compression.ZSTD)

    def ours() -> object:
        return json_batches(batch, topic, from_offset=0, bytes_max=LARGE, at_least_one=True)

    def row_by_row() -> object:
        return [json.dumps(row, default=str).encode() for row in rows.to_pylist()]

    ours()  # imports, and the first memory
    pairs = [(spent_s(ours), spent_s(row_by_row)) for _ in range(rounds)]
    for nth, name in enumerate(("Arrow's functions, batch to records", "an object for each row")):
        print(f"{name:36}{ROWS / statistics.median(pair[nth] for pair in pairs):12,.0f} rows/s of a core")
    print(f"{'ratio':36}{statistics.median(slow / fast for fast, slow in pairs):12.1f}")


if __name__ == "__main__":
    main()
