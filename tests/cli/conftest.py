"""Fixtures: the program, run in this process against a fake cluster, with any standard input."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sparklog.cli import progress
from sparklog.cli.command_config import VARIABLE
from sparklog.cli.main import main
from sparklog.model.settings.tls_settings import tls_settings_of_listener
from sparklog.network.tls.from_settings import server_side
from sparklog.testing import InProcessCluster
from tests.certificates import Authority


def start_fake(broker_count: int, tls: Any = None) -> Any:
    name = "sparklog_tests_fake_cluster"
    if name not in sys.modules:
        path = Path(__file__).parent.parent / "client" / "fake_cluster.py"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name].FakeCluster(broker_count, tls)


@pytest.fixture
def fake() -> Iterator[Any]:
    cluster = start_fake(2)
    yield cluster
    cluster.stop()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def fake_over_tls(authority: Authority) -> Iterator[Any]:
    """A broker that asks for certificates of ``authority``."""
    settings = authority.settings(authority.issue("broker"), client_auth="required")
    cluster = start_fake(1, server_side(tls_settings_of_listener(settings, "SSL")))
    yield cluster
    cluster.stop()


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str


@pytest.fixture
def sparklog(
    fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Callable[..., Ran]:
    """Runs ``sparklog ARGUMENTS``, against the fake cluster unless told not to."""

    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(progress, "PATIENCE_S", 60.0)  # on a busy machine everything takes long

    def run(*arguments: str, stdin: bytes = b"", connect: bool = True) -> Ran:
        (tmp_path / "stdin").write_bytes(stdin)
        server = ("--bootstrap-server", fake.bootstrap_servers) if connect else ()
        with (tmp_path / "stdin").open() as source:
            monkeypatch.setattr(sys, "stdin", source)
            status = main([*arguments, *server])
        out, err = capfdbinary.readouterr()
        return Ran(status, out.decode(), err.decode())

    return run


@pytest.fixture
def cluster() -> Iterator[InProcessCluster]:
    """Four real brokers in this process."""
    with InProcessCluster(brokers=4) as cluster:
        yield cluster


@pytest.fixture
def administer(cluster: InProcessCluster, sparklog: Callable[..., Ran]) -> Callable[..., Ran]:
    """Runs ``sparklog ARGUMENTS`` against the four brokers; the arguments are one text, or several."""

    def run(*arguments: str) -> Ran:
        words = arguments[0].split() if len(arguments) == 1 else arguments
        return sparklog(*words, "--bootstrap-server", cluster.bootstrap_servers, connect=False)

    return run
