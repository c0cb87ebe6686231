"""HDFS by hdfs-native where there is none. The contract is in test_real_hdfs.py."""

from functools import partial

from sparklog.remote.hdfs import HdfsStore
from sparklog.remote.locate import parse_store_url
from sparklog.remote.open_store import open_store
from sparklog.remote.patience import Stop
from sparklog.remote.store import Failure
from tests.remote.contract import failure


class Writer:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def hsync(self) -> None:
        self.calls.append("hsync")

    def close(self) -> None:
        self.calls.append("close")


def test_a_file_is_synced_before_it_is_closed() -> None:
    writer = Writer()
    HdfsStore(parse_store_url("hdfs://127.0.0.1:1/a"), 1, Stop())._sync_and_close(writer)
    assert writer.calls == ["hsync", "close"]


def test_a_host_that_is_not_there_is_away() -> None:
    store = open_store("hdfs://127.0.0.1:1/history", timeout_s=0.3)
    assert failure(partial(store.put, "a", [b"1"])) is Failure.AWAY
    assert failure(partial(store.read, "a", 0, 1)) is Failure.AWAY


def test_a_host_that_hangs_is_away(hanging: int) -> None:
    store = open_store(f"hdfs://127.0.0.1:{hanging}/history", timeout_s=0.3)
    assert failure(partial(store.read, "a", 0, 1)) is Failure.AWAY
