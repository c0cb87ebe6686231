"""The thread that draws a query's progress, beside a query that does as it is told."""

import io
import threading
from typing import Any

from py4j.protocol import Py4JError

from sparklog_datasource.monitoring.pictures import PlainLines
from sparklog_datasource.monitoring.query_progress import Progress

WAIT_S = 60


class Query:
    def __init__(self) -> None:
        self.recentProgress: list[dict[str, Any]] = [
            {"batchId": 0, "timestamp": "t", "numInputRows": 3, "sources": []}
        ]
        self.ended = threading.Event()
        self.failure: Exception | None = None

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 (Spark's name)
        has_ended = self.ended.wait(timeout)
        if has_ended and self.failure is not None:
            raise self.failure
        return has_ended


def test_the_drawing_ends_with_the_query() -> None:
    query, file = Query(), io.StringIO()
    drawing = Progress(query, PlainLines("q", file))
    assert not drawing.wait(0.01)
    query.ended.set()
    assert drawing.wait(WAIT_S)
    assert file.getvalue().splitlines()[-1] == "q: 3 rows, 0/s (ended)"


def test_the_drawing_can_be_stopped_more_than_once_and_the_query_goes_on() -> None:
    query, file = Query(), io.StringIO()
    with Progress(query, PlainLines("q", file)) as drawing:
        drawing.stop()
    assert not query.ended.is_set()
    assert file.getvalue().splitlines()[-1].endswith("(no longer watched)")


def test_a_spark_that_is_gone_ends_the_drawing() -> None:
    query, file = Query(), io.StringIO()
    query.failure = Py4JError("the gateway is closed\nand more")
    query.ended.set()
    assert Progress(query, PlainLines("q", file)).wait(WAIT_S)
    assert file.getvalue() == "q: 0 rows, 0/s (Spark no longer answers: the gateway is closed)\n"
