"""S3Proxy, a second server of S3's protocol, on files of a disk: the contract."""

import uuid
from collections.abc import Callable

import pytest

from sparklog.remote.open_store import open_store
from sparklog.remote.store import RemoteStore
from tests.remote.contract import StoreContract

pytestmark = [pytest.mark.integration, pytest.mark.remote]


class TestS3Proxy(StoreContract):
    @pytest.fixture
    def store(self, s3proxy: str, s3_keys: Callable[[str], None]) -> RemoteStore:
        s3_keys(s3proxy)
        return open_store(f"s3://history/{uuid.uuid4().hex}")
