"""``sparklog page`` as a process: its address, its end, a port that is taken."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from sparklog.cli.main import main
from sparklog.testing import InProcessCluster
from sparklog.web.command import listening_at

pytestmark = pytest.mark.integration


def test_it_prints_its_address_serves_the_cluster_and_ends_with_ctrl_c(cluster: InProcessCluster) -> None:
    command = [sys.executable, "-m", "sparklog", "page", "--bootstrap-server", cluster.bootstrap_servers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"sparklog: page: http://127\.0\.0\.1:(\d+)/\n", line)
        assert found, line
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=30)
        connection.request("GET", "/api/")
        assert json.load(connection.getresponse())["verdict"]["level"] == "well"
        connection.close()
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stdout.read() == ""


def test_a_port_that_is_taken_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with listening_at("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert main(["page", "--bootstrap-server", "127.0.0.1:1", "--port", str(port)]) == 1
    assert (
        f"cannot listen at 127.0.0.1:{port}: Address already in use; give another --port"
        in capsys.readouterr().err
    )
