"""S3: the contract on a server in memory; wrong keys, clocks, buckets and hosts that hang."""

import uuid
from collections.abc import Callable
from functools import partial

import pytest

from sparklog.remote.open_store import open_store
from sparklog.remote.store import Failure, RemoteStore, RemoteStoreError
from tests.remote.conftest import Server
from tests.remote.contract import StoreContract, failure

Point = Callable[[str], None]

pytestmark = pytest.mark.integration


class TestS3InMemory(StoreContract):
    @pytest.fixture
    def store(self, s3_server: str, s3_keys: Point) -> RemoteStore:
        s3_keys(s3_server)
        return open_store(f"s3://history/{uuid.uuid4().hex}")


def test_a_bucket_that_is_not_there_is_told(s3_server: str, s3_keys: Point) -> None:
    s3_keys(s3_server)
    store = open_store("s3://nowhere/x")
    with pytest.raises(RemoteStoreError, match=r"a cannot be written to s3://nowhere/x: .*bucket") as refused:
        store.put("a", [b""])
    assert refused.value.failure is Failure.MISSING


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (403, "SignatureDoesNotMatch", Failure.REFUSED),
        (403, "InvalidAccessKeyId", Failure.REFUSED),
        (403, "AccessDenied", Failure.REFUSED),
        (403, "RequestTimeTooSkewed", Failure.REFUSED),
        (412, "PreconditionFailed", Failure.EXISTS),
        (507, "XMinioStorageFull", Failure.FULL),
        (400, "InvalidRequest", Failure.OTHER),
    ],
)
def test_what_the_server_refuses_is_told_with_its_code(
    refusing: Server, s3_keys: Point, status: int, code: str, expected: Failure
) -> None:
    s3_keys(refusing(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()))
    with pytest.raises(RemoteStoreError, match=code) as refused:
        open_store("s3://history/x", timeout_s=5).put("a", [b"1"])
    assert refused.value.failure is expected


def test_hosts_that_hang_or_are_not_there_are_away(hanging: int, s3_keys: Point) -> None:
    s3_keys(f"http://127.0.0.1:{hanging}")
    assert failure(partial(open_store("s3://history/x", timeout_s=0.3).read, "a", 0, 1)) is Failure.AWAY
    s3_keys("http://127.0.0.1:1")
    assert failure(partial(open_store("s3://history/x", timeout_s=5).put, "a", [b"1"])) is Failure.AWAY
