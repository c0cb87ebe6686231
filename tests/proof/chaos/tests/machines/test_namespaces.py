"""Networks of a run: who reaches whom, and that nothing is left of one that was killed."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from chaos.machines import namespaces
from chaos.machines.namespaces import HUB, Network, remove_left_behind
from chaos.machines.privileges import ToolFailed, call

pytestmark = pytest.mark.chaos


@pytest.fixture(autouse=True)
def _allowed():
    if (why := namespaces.probe()) is not None:
        pytest.skip(f"not run: {why}")


def reaches(network, one, other):
    try:
        network.call(one, "ping", "-c", "1", "-W", "1", network.address(other))
    except ToolFailed:
        return False
    return True


@pytest.fixture
def network():
    with Network(["a", "b"]) as made:
        yield made


def test_nodes_reach_each_other_and_the_hub(network):
    assert reaches(network, "a", "b")
    assert reaches(network, "b", HUB)


def test_nobody_reaches_the_world(network):
    assert "default" not in network.call("a", "ip", "route")
    assert network.call(HUB, "cat", "/proc/sys/net/ipv4/ip_forward").strip() == "0"


def test_a_thread_inside_a_node_is_there_and_comes_back(network):
    def here():
        return os.readlink(f"/proc/self/task/{threading.get_native_id()}/ns/net")

    before = here()
    with network.inside("a"):
        assert here() != before
        assert network.address("a") in subprocess.run(["ip", "a"], capture_output=True, text=True).stdout
    assert here() == before


def test_what_a_killed_run_has_left_behind_goes_with_the_next_run():
    program = (
        "from chaos.machines.namespaces import Network; import subprocess, sys; network = Network(['a']); "
        "network.set_up(); child = subprocess.Popen(network.command('a', ['sleep', '1000'])); "
        "print(child.pid, flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as run:
        sleeper = int(run.stdout.readline())
        assert remove_left_behind() == [], "it lives"
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert sorted(remove_left_behind()) == [f"slchaos-{run.pid}-{node}" for node in ("a", HUB)]
    assert f"slchaos-{run.pid}" not in call("ip", "netns", "list")
    assert not Path(f"/proc/{sleeper}/ns/net").exists(), "it has ended"
