"""Clients and Spark upon brokers whose history is on S3, in memory."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.remote.clients_contract import ClientsContract
from tests.remote.conftest import point_s3_at

pytestmark = pytest.mark.integration


class TestClientsOnS3InMemory(ClientsContract):
    @pytest.fixture(scope="class")
    @classmethod
    def url(cls, s3_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        no_keys: Path = tmp_path_factory.mktemp("keys")
        with pytest.MonkeyPatch.context() as environment:
            point_s3_at(s3_server, environment, no_keys)
            yield f"s3://history/{uuid.uuid4().hex}"
