"""The demo's input: real earthquakes and flights, carried by the package (``data/README.md`` says whence)."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parents[1] / "data"
QUAKES_FILE: Final = DATA / "earthquakes.jsonl"
FLIGHTS_FILE: Final = DATA / "flights-200k.arrow"


@dataclass(frozen=True, slots=True)
class Quake:
    """One earthquake as the feed sends it: its id, and its JSON as it stands in the file."""

    id: str
    json: bytes


def quake_list() -> list[Quake]:
    lines = QUAKES_FILE.read_bytes().splitlines()
    return [Quake(str(json.loads(line)["id"]), line) for line in lines]


def quakes_count() -> int:
    """Rows of the file."""
    return len(QUAKES_FILE.read_bytes().splitlines())


def quakes_frame(spark: Any) -> Any:
    """Key (the quake's id) and value (all 30 columns as JSON) of every earthquake."""
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    quakes = spark.read.json(str(QUAKES_FILE))
    return quakes.select(F.col("id").alias("key"), F.to_json(F.struct("*")).alias("value"))


def flights_count() -> int:
    """Rows of the file."""
    return int(_flights().num_rows)


def _flights() -> Any:
    """All columns, as an Arrow table."""
    # heavy, and only the demo wants it
    import pyarrow as pa
    import pyarrow.ipc

    with pa.memory_map(str(FLIGHTS_FILE)) as source:
        return pyarrow.ipc.open_file(source).read_all()


def flights_frame(spark: Any) -> Any:
    """Key (the flight's number in the file) and value (its columns as JSON) of every flight."""
    import pyarrow as pa  # heavy, and only the demo wants it
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

    table = _flights()
    numbered = table.append_column("flight", pa.array(range(table.num_rows), pa.int32()))
    flights = spark.createDataFrame(numbered)
    return flights.select(
        F.col("flight").cast("string").alias("key"), F.to_json(F.struct("*")).alias("value")
    )
