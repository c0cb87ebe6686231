"""docs/history-on-hdfs.md, line by line, on a real HDFS: files are saved and commands run, in their order."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pages import DOCS, Person, blocks_of
from tests.remote.servers.hdfs import Hdfs

pytestmark = [pytest.mark.integration, pytest.mark.remote, pytest.mark.timeout(600)]

QUAKES, FLIGHTS = 1_707, 200_000


@pytest.fixture
def reader(tmp_path: Path, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    """A person whose NameNode is the test's, and who is the user that its servers run as."""
    monkeypatch.setenv("HADOOP_USER_NAME", os.environ.get("USER", "root"))
    host, port = hdfs.address.split(":")
    ours = {"namenode:8020": hdfs.address, 'host="namenode", port=8020': f'host="{host}", port={port}'}
    reader = Person(tmp_path, "history", ours)
    yield reader
    reader.interrupt()


def ends_of_history(folder: Path, topic: str) -> list[int]:
    """Of each partition: where the active segment of broker 1 begins."""
    logs = folder.glob(f"cluster/broker-1/0/{topic}-*/*.log")
    return [int(log.stem) for log in logs]


def test_the_week_is_read_through_brokers_and_without_them(reader: Person) -> None:
    printed = ""
    for block in blocks_of(DOCS / "history-on-hdfs.md"):
        if block.section == "Without brokers":
            reader.interrupt()
        printed += reader.follow(block)
    assert "is fit to hold history" in printed
    assert "quakes that were not written: 0\n" in printed
    assert f"Kafka client: {QUAKES} quakes, the first at offset 0\n" in printed
    assert f"Spark: {FLIGHTS} flights\n" in printed
    (begins,) = re.findall(r"the third of February begins at offset (\d+)\n", printed)
    assert f"Spark: {QUAKES - int(begins)} quakes from the third of February on\n" in printed
    (in_hdfs,) = ends_of_history(reader.folder, "quakes")
    assert 1_000 < in_hdfs < QUAKES
    assert f"pandas: {in_hdfs} quakes from 2018-01-31 01:49:59.650000+00:00 on\n" in printed
    assert f"Polars: {in_hdfs} quakes, the strongest with magnitude " in printed
    assert f"DuckDB: {sum(ends_of_history(reader.folder, 'flights'))} flights, " in printed
