"""S3Proxy, a second server of S3's protocol, on files of a disk: the contract."""

import uuid
from collections.abc import Callable, Iterator
from urllib.request import Request, urlopen

import pytest

from sparklog.remote.open_store import open_store
from sparklog.remote.store import RemoteStore
from tests.remote.conftest import answers, free_port
from tests.remote.contract import StoreContract
from tests.remote.servers.java import JavaProcess, jars
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.remote]


@pytest.fixture(scope="module")
def s3proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the bucket ``history``."""
    folder = tmp_path_factory.mktemp("s3proxy")
    address = f"http://127.0.0.1:{free_port()}"
    properties = {
        "s3proxy.endpoint": address,
        "s3proxy.authorization": "none",
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": folder,
    }
    text = "".join(f"{name}={value}\n" for name, value in properties.items())
    (folder / "s3proxy.conf").write_text(text)
    main = ["org.gaul.s3proxy.Main", "--properties", folder / "s3proxy.conf"]
    server = JavaProcess([f"{jars('s3proxy-4.1.0')}/*"], main, folder / "s3proxy.log")
    try:
        until(lambda: answers(address), lambda: f"S3Proxy:\n{server}")
        with urlopen(Request(f"{address}/history", method="PUT"), timeout=10):
            yield address
    finally:
        server.end()


class TestS3Proxy(StoreContract):
    @pytest.fixture
    def store(self, s3proxy: str, s3_keys: Callable[[str], None]) -> RemoteStore:
        s3_keys(s3proxy)
        return open_store(f"s3://history/{uuid.uuid4().hex}")
