"""The faults of a network bite, told without sparklog: pings and plain TCP connections."""

import contextlib
import re
import socket
import struct
import subprocess
import sys
import time
from random import Random

import pytest

from chaos.faults.network import BOTH, INTO, OUT, VALUES, Rules, start_queue, stop_queue
from chaos.faults.packets import Plan, corrupted
from chaos.machines import namespaces
from chaos.machines.namespaces import Network
from chaos.machines.privileges import ToolFailed


@pytest.fixture
def network():
    if (why := namespaces.probe()) is not None:
        pytest.skip(f"not run: {why}")
    with Network(["a", "b"]) as made:
        yield made


@pytest.fixture
def rules(network):
    made = Rules(network)
    yield made
    made.remove()


def reaches(network, one, other):
    try:
        network.call(one, "ping", "-c", "1", "-W", "1", network.address(other))
    except ToolFailed:
        return False
    return True


SERVER = """
import socket, sys
listening = socket.create_server((sys.argv[1], 7000))
print(flush=True)
connection, _ = listening.accept()
while data := connection.recv(1 << 16):
    connection.sendall(data)
"""


class Echo:
    """A TCP connection from node b to an echo in node a."""

    def __init__(self, network):
        program = [sys.executable, "-c", SERVER, network.address("a")]
        self._server = subprocess.Popen(network.command("a", program), stdout=subprocess.PIPE)
        self._server.stdout.readline()
        with network.inside("b"):
            self.connection = socket.create_connection((network.address("a"), 7000), timeout=30)

    def __call__(self, data):
        self.connection.sendall(data)
        back = b""
        while len(back) < len(data):
            more = self.connection.recv(1 << 16)
            assert more, "the connection has ended"
            back += more
        return back

    def close(self):
        self.connection.close()
        self._server.kill()
        self._server.communicate()


@pytest.fixture
def echo(network):
    made = Echo(network)
    yield made
    made.close()


@pytest.mark.chaos
@pytest.mark.parametrize("chains", [BOTH, INTO, OUT], ids=["both", "into", "out"])
def test_a_cut_link_is_whole_again_when_the_rules_are_gone(network, rules, chains):
    assert reaches(network, "a", "b")
    rules.drop("a", "b", chains)
    assert not reaches(network, "a", "b")
    assert reaches(network, "a", "hub"), "only that link is cut"
    rules.remove()
    assert reaches(network, "a", "b")


DATAGRAMS = """
import socket, sys
receiving = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiving.bind((sys.argv[1], 7002))
receiving.settimeout(float(sys.argv[2]))
print(flush=True)
try:
    print(receiving.recv(100).decode(), flush=True)
except TimeoutError:
    print("nothing", flush=True)
"""


def heard(network, sender, receiver, timeout_s):
    """What the receiver hears of a datagram, which needs no answer."""
    program = [sys.executable, "-c", DATAGRAMS, network.address(receiver), str(timeout_s)]
    with subprocess.Popen(network.command(receiver, program), stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        dropped_on_the_way_out = contextlib.suppress(PermissionError)
        with network.inside(sender), socket.socket(type=socket.SOCK_DGRAM) as sending, dropped_on_the_way_out:
            sending.sendto(b"hello", (network.address(receiver), 7002))
        return process.stdout.readline().strip()


@pytest.mark.chaos
def test_a_one_way_cut_stops_one_way_only(network, rules):
    rules.drop("a", "b", INTO)
    assert heard(network, "b", "a", 0.5) == "nothing"
    assert heard(network, "a", "b", 30) == "hello"
    rules.remove()
    rules.drop("a", "b", OUT)
    assert heard(network, "a", "b", 0.5) == "nothing"
    assert heard(network, "b", "a", 30) == "hello"


@pytest.mark.chaos
def test_a_connection_survives_a_cut_and_goes_on(network, rules, echo):
    assert echo(b"before") == b"before"
    rules.drop("a", "b", BOTH)
    echo.connection.sendall(b"meanwhile")
    echo.connection.settimeout(0.5)
    with pytest.raises(TimeoutError):
        echo.connection.recv(100)
    rules.remove()
    echo.connection.settimeout(30)
    assert echo.connection.recv(100) == b"meanwhile"


@pytest.mark.chaos
def test_with_resets_a_connection_ends_at_once(network, rules, echo):
    rules.drop("a", "b", INTO, reset=True)
    echo.connection.sendall(b"x")
    with pytest.raises(ConnectionResetError):
        echo.connection.recv(100)


@pytest.mark.chaos
def test_a_queue_delays_and_lets_go_when_it_ends(network, rules, echo):
    echo(b"warm")
    daemon = start_queue(network, "a", Plan(7, delay_ms=200))
    rules.add("a", "INPUT", "-i", "eth0", "-p", "tcp", "-j", "NFQUEUE", "--queue-num", "7")
    began = time.monotonic()
    assert echo(b"slow") == b"slow"
    assert time.monotonic() - began >= 0.2
    rules.remove()
    assert stop_queue(daemon) == 0


@pytest.mark.chaos
def test_a_changed_bit_passes_the_checksum_of_tcp(network, rules, echo):
    value = b"plain/0/producer-1/0#0/17"
    sent = bytes(range(256)) + value + bytes(range(256))
    daemon = start_queue(network, "a", Plan(7, corrupt=1.0, pattern=VALUES, seed=1))
    rules.add("a", "INPUT", "-i", "eth0", "-p", "tcp", "-j", "NFQUEUE", "--queue-num", "7")
    got = echo(sent)
    rules.remove()
    assert stop_queue(daemon) == 1
    differ = [at for at in range(len(sent)) if sent[at] != got[at]]
    assert len(differ) == 1
    assert 256 <= differ[0] < 256 + len(value), "only where the pattern is"
    assert (sent[differ[0]] ^ got[differ[0]]).bit_count() == 1


@pytest.mark.chaos
def test_loss_slows_a_connection_down_and_breaks_nothing(network, rules, echo):
    lose = ("-m", "statistic", "--mode", "random", "--probability", "0.2", "-j", "DROP")
    rules.add("a", "INPUT", "-i", "eth0", *lose)
    data = bytes(range(256)) * 400
    assert echo(data) == data
    assert int(re.search(r"(\d+)\s+\d+ DROP", network.call("a", "iptables", "-w", "-nvxL", "INPUT"))[1]) > 0


def test_what_is_no_tcp_or_has_no_pattern_is_left_alone():
    def packet(protocol, content):
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + len(content), 0, 0, 64, protocol, 0, b"abcd", b"efgh")
        return ip + struct.pack("!HHIIBBHHH", 1, 2, 3, 4, 5 << 4, 0, 0, 0, 0) + content

    pattern = re.compile(VALUES.encode())
    value = b"plain/0/producer-1/0#0/17"
    assert corrupted(packet(17, value), pattern, Random(1)) is None
    assert corrupted(packet(6, b"nothing of ours"), pattern, Random(1)) is None
    assert corrupted(packet(6, b"plain-0 producer-1"), pattern, Random(1)) is None
    assert corrupted(packet(6, value), pattern, Random(1)) is not None
