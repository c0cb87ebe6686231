"""A real HDFS, by hdfs-native and by REST: the contract, and what happens when its servers refuse or hang."""

import gc
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from sparklog.remote.open_store import open_store
from sparklog.remote.store import Failure, RemoteStore, RemoteStoreError
from tests.remote.contract import StoreContract, failure
from tests.remote.servers.hdfs import Hdfs
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.remote]

ROOT = Path(__file__).parents[2]
Open = Callable[..., RemoteStore]


@pytest.fixture(params=["hdfs", "webhdfs"])
def open_one(request: pytest.FixtureRequest, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens a folder of its own, by either protocol, as the user that HDFS's servers run as."""
    monkeypatch.setenv("HADOOP_USER_NAME", os.environ.get("USER", "root"))
    address = hdfs.address if request.param == "hdfs" else hdfs.web_address
    folder = f"/history-{uuid.uuid4().hex}"

    def open_it(timeout_s: float = 30, below: str = folder) -> RemoteStore:
        return open_store(f"{request.param}://{address}{below}", timeout_s)

    return open_it


class TestRealHdfs(StoreContract):
    @pytest.fixture
    def store(self, open_one: Open) -> RemoteStore:
        return open_one()


def test_safe_mode_is_told_as_read_only(hdfs: Hdfs, open_one: Open) -> None:
    store = open_one()
    store.put("before", [b"1"])
    hdfs.admin("-safemode", "enter")
    try:
        assert failure(lambda: store.put("x", [b"1"])) is Failure.REFUSED
        assert store.read("before", 0, 1) == b"1"
    finally:
        hdfs.admin("-safemode", "leave")


def test_a_folder_of_another_user_is_refused(open_one: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    assert failure(lambda: open_one(below="/not-mine").put("x", [b"1"])) is Failure.REFUSED


def test_a_quota_that_is_used_up_is_told_as_full(hdfs: Hdfs, open_one: Open) -> None:
    folder = f"/small-{uuid.uuid4().hex}"
    store = open_one(below=folder)
    store.put("first", [b"1"])
    hdfs.admin("-setSpaceQuota", "1000", folder)
    assert failure(lambda: store.put("x", [b"1" * 2000])) is Failure.FULL
    assert store.names("") == ["first"]


def test_a_paused_server_is_away_and_then_back(hdfs: Hdfs, open_one: Open) -> None:
    store = open_one(timeout_s=2)
    store.put("before", [b"1"])
    hdfs.name_node.pause()
    try:
        assert failure(lambda: store.read("before", 0, 1)) is Failure.AWAY
        assert failure(lambda: store.put("x", [b"1"])) is Failure.AWAY
    finally:
        hdfs.name_node.resume()
    until(lambda: reads(store, "before"), "the store")


def test_collected_garbage_never_waits_for_hdfs(hdfs: Hdfs, open_one: Open) -> None:
    store = open_one()
    writer = store._create(f"{store._url.folder}/half-written")
    writer.write(b"1")
    hdfs.name_node.pause()
    mending = threading.Timer(20, hdfs.name_node.resume)
    mending.start()
    try:
        del writer
        gc.collect()
        assert mending.is_alive(), "it waited until HDFS went on"
    finally:
        mending.cancel()
        mending.join()
        hdfs.name_node.resume()


def reads(store: RemoteStore, name: str) -> bool:
    try:
        return store.read(name, 0, 1) != b""
    except RemoteStoreError:
        return False


def test_a_writer_that_is_killed_leaves_nothing_under_the_name(open_one: Open, tmp_path: Path) -> None:
    store = open_one()
    program = (
        "import sys, time\n"
        "from sparklog.remote.open_store import open_store\n"
        "def pieces():\n"
        "    yield bytes(9 << 20)\n"
        "    print('half', flush=True)\n"
        "    time.sleep(600)\n"
        "open_store(sys.argv[1]).put('x', pieces())\n"
    )
    command = [sys.executable, "-c", program, str(store._url)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"half\n"
        writer.kill()
    assert store.names("") == []
    assert len(store.names(".uploading")) == 1
    assert store.put("x", [b"whole"]) == 5
