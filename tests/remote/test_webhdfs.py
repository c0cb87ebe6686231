"""HDFS by REST where it refuses, hangs or answers nonsense. The contract is in test_real_hdfs.py."""

import json
from functools import partial

import pytest

from sparklog.remote.open_store import open_store
from sparklog.remote.store import Failure, RemoteStore, RemoteStoreError
from tests.remote.conftest import Server
from tests.remote.contract import failure


def store_at(address: str, timeout_s: float = 5) -> RemoteStore:
    return open_store(f"webhdfs://{address.removeprefix('http://')}/history", timeout_s)


@pytest.mark.parametrize(
    ("exception", "message", "expected"),
    [
        ("AccessControlException", "Permission denied: user=dr.who", Failure.REFUSED),
        ("SafeModeException", "Cannot create file. Name node is in safe mode.", Failure.REFUSED),
        ("DSQuotaExceededException", "The DiskSpace quota is exceeded", Failure.FULL),
        ("FileAlreadyExistsException", "rename destination exists", Failure.EXISTS),
        ("IOException", "could only be written to 0 of the 1 minReplication nodes.", Failure.FULL),
        (
            "IOException",
            "could only be written to 0 of the 1 nodes. There are 0 datanode(s) running",
            Failure.AWAY,
        ),
        ("StandbyException", "Operation category WRITE is not supported", Failure.OTHER),
    ],
)
def test_what_hdfs_refuses_is_told_in_its_words(
    refusing: Server, exception: str, message: str, expected: Failure
) -> None:
    body = json.dumps({"RemoteException": {"exception": exception, "message": message}}).encode()
    store = store_at(refusing(403, body))
    with pytest.raises(
        RemoteStoreError, match="x cannot be written to webhdfs://.*: " + exception
    ) as refused:
        store.put("x", [b"1"])
    assert refused.value.failure is expected


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"Location": 7}', b'{"FileStatus": {}}', b"\xff"])
def test_an_answer_that_is_none_of_hdfs_is_a_failure_and_no_crash(refusing: Server, body: bytes) -> None:
    for status in (200, 404, 500):
        store = store_at(refusing(status, body))
        assert failure(partial(store.put, "x", [b"1"])) is Failure.OTHER
        assert failure(partial(store.read, "x", 0, 1)) is Failure.OTHER
        assert failure(partial(store.names, "x")) is Failure.OTHER


def test_hosts_that_hang_or_are_not_there_are_away(hanging: int) -> None:
    assert failure(partial(store_at(f"127.0.0.1:{hanging}", 0.3).read, "a", 0, 1)) is Failure.AWAY
    assert failure(partial(store_at("127.0.0.1:1").put, "a", [b"1"])) is Failure.AWAY
