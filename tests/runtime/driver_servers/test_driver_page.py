"""The page of a driver: its process begins with the first connection, and ends with the driver."""

import http.client
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparklog.web.page_plan import PagePlan, decode_plan
from sparklog_runtime.driver_servers.driver_page import DriverPage
from sparklog_runtime.stop.child_processes import is_alive, processes_of_run
from tests.waiting import until

pytestmark = pytest.mark.integration


def plan(descriptor: int) -> PagePlan:
    """Of a cluster that is not there: the page says so."""
    return PagePlan(descriptor=descriptor, servers="127.0.0.1:1", options="--root /data", host="127.0.0.1")


@pytest.fixture
def page(tmp_path: Path) -> Iterator[DriverPage]:
    page = DriverPage.open("127.0.0.1", 0, run="a-run-of-tests", log=tmp_path / "page.log")
    yield page
    page.stop()


def health(page: DriverPage) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
    connection.request("GET", "/health", headers={"Connection": "close"})
    status = connection.getresponse().status
    connection.close()
    return status


def test_nobody_looks_and_there_is_no_process(page: DriverPage) -> None:
    page.start(plan)
    assert page.pid is None
    assert page.url == f"http://127.0.0.1:{page.port}/"


def test_a_connection_starts_the_process_and_a_later_one_starts_the_next(page: DriverPage) -> None:
    page.start(plan)
    assert health(page) == 200
    first = page.pid
    assert first is not None
    assert processes_of_run("a-run-of-tests") == [first]
    os.kill(first, signal.SIGTERM)  # an end in order, as after ten minutes without a request
    until(lambda: not is_alive(first), "the page's end")
    assert health(page) == 200
    second = page.pid
    assert second not in (None, first)
    port = page.port
    page.stop()
    assert not is_alive(second or 0)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_port_that_is_taken_is_an_error_of_the_system(page: DriverPage, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="in use"):
        DriverPage.open("127.0.0.1", page.port, run="r", log=tmp_path / "log")


def test_a_plan_comes_back_from_its_line_as_it_was() -> None:
    whole = PagePlan(
        descriptor=7,
        servers="a:1,b:2",
        options="--root '/a b'",
        host="::1",
        allowed_hosts=("x", "y"),
        shows_records=False,
        controllers=(("h", 9),),
        properties={"security.protocol": "SSL"},
    )
    assert decode_plan(whole.encode()) == whole
