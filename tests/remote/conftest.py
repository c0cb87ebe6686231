"""Stores for the tests: a folder, S3 in memory, and servers that refuse or hang."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from tests.remote.servers.hdfs import Hdfs
from tests.remote.servers.java import JavaProcess, jars
from tests.waiting import until

Server = Callable[[int, bytes], str]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=1):
            return True
    except URLError as error:
        return hasattr(error, "code")
    except OSError:
        return False


@contextmanager
def s3_in_memory(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address and the process of a moto server with the bucket ``history``."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    log = (folder / "log").open("wb")
    with log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        address = f"http://127.0.0.1:{port}"
        try:
            until(lambda: answers(f"{address}/moto-api/"), "the S3 server")
            with urlopen(Request(f"{address}/history", method="PUT"), timeout=10):
                yield address, server
        finally:
            server.kill()  # which ends a stopped one, too; its objects are in memory


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that the tests share."""
    with s3_in_memory(tmp_path_factory.mktemp("moto")) as (address, _):
        yield address


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    server = Hdfs(tmp_path_factory.mktemp("hdfs"), free_port(), free_port())
    yield server
    server.end()


@pytest.fixture(scope="session")
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


def point_s3_at(address: str, environment: pytest.MonkeyPatch, folder: Path) -> None:
    """Points S3's client at an address, by the environment as an operator does."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        environment.delenv(name)
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": str(folder / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        environment.setenv(name, value)


@pytest.fixture
def s3_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Points S3's client at an address, for one test."""
    return lambda address: point_s3_at(address, monkeypatch, tmp_path)


@pytest.fixture
def refusing() -> Iterator[Server]:
    """Starts a server that answers every request with one status and body; its address."""
    servers: list[ThreadingHTTPServer] = []

    def start(status: int, body: bytes) -> str:
        class Refusing(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # which answers "Expect: 100-continue"

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Connection", "close")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815 (http.server's names)

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def hanging() -> Iterator[int]:
    """The port of a host that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield int(listener.getsockname()[1])
