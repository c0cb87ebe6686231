"""Clients and Spark upon brokers whose history is on HDFS, by both protocols, and on S3Proxy."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.remote.clients_contract import ClientsContract
from tests.remote.conftest import point_s3_at
from tests.remote.servers.hdfs import Hdfs

pytestmark = [pytest.mark.integration, pytest.mark.remote]


class TestClientsOnHdfs(ClientsContract):
    @pytest.fixture(scope="class", params=["hdfs", "webhdfs"])
    @classmethod
    def url(cls, request: pytest.FixtureRequest, hdfs: Hdfs) -> Iterator[str]:
        address = hdfs.address if request.param == "hdfs" else hdfs.web_address
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HADOOP_USER_NAME", os.environ.get("USER", "root"))
            yield f"{request.param}://{address}/clients-{uuid.uuid4().hex}"


class TestClientsOnS3Proxy(ClientsContract):
    @pytest.fixture(scope="class")
    @classmethod
    def url(cls, s3proxy: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        no_keys: Path = tmp_path_factory.mktemp("keys")
        with pytest.MonkeyPatch.context() as environment:
            point_s3_at(s3proxy, environment, no_keys)
            yield f"s3://history/{uuid.uuid4().hex}"
