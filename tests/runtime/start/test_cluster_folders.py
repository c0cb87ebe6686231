"""A root directory: its folders, its lock, its ports, its cluster.json."""

import json
import os
import socket

import pytest

from sparklog_runtime.life.cluster_file import BrokerEntry, ClusterFile, ControllerEntry, write_cluster_file
from sparklog_runtime.life.publisher import Publisher
from sparklog_runtime.start.cluster_folders import Layout, RootInUse, RootLock
from sparklog_runtime.supervision.tcp_ports import PortInUse, PortReservation


def test_a_second_start_on_a_root_in_use_is_told_the_holders_pid(tmp_path):
    layout = Layout.at(tmp_path / "new" / "root")
    with RootLock(layout), pytest.raises(RootInUse, match=f"in use by process {os.getpid()}"):
        RootLock(layout)
    RootLock(layout).release()


def test_releasing_a_root_twice_does_not_close_someone_elses_file(tmp_path):
    lock = RootLock(Layout.at(tmp_path))
    lock.release()
    with (tmp_path / "other").open("wb") as other:
        lock.release()
        other.write(b"still open")


def test_a_brace_in_the_root_survives_the_patterns_of_log_directories(tmp_path):
    layout = Layout.at(tmp_path / "a{b}c")
    assert layout.log_dir_patterns(2)[1].format(id=7) == f"{tmp_path}/a{{b}}c/broker-7/1"


def test_a_relative_root_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Layout.at("data").root == tmp_path / "data"


def test_a_port_in_use_is_named_with_the_remedy():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use.*--port"):
            PortReservation().reserve("127.0.0.1", port)


def test_a_port_beyond_the_last_is_refused():
    with pytest.raises(PortInUse, match="port 65536 does not exist"):
        PortReservation().reserve("127.0.0.1", 65_536)


def test_a_reserved_port_can_be_listened_on_by_its_broker_again_and_again():
    reservation = PortReservation()
    port, other = reservation.reserve("127.0.0.1", 0), reservation.reserve("127.0.0.1", 0)
    assert port != other
    for _ in range(2):
        socket.create_server(("127.0.0.1", port)).close()
    reservation.release()


def test_a_withdrawn_lock_leaves_what_was_there_and_nothing_else(tmp_path):
    RootLock(Layout.at(tmp_path / "a/b")).withdraw()
    assert list(tmp_path.iterdir()) == []
    used = tmp_path / "used"
    RootLock(Layout.at(used)).release()
    RootLock(Layout.at(used)).withdraw()
    assert [path.name for path in used.iterdir()] == ["lock"]


def test_a_reserved_port_is_refused_to_whoever_does_not_share():
    reservation = PortReservation()
    port = reservation.reserve("127.0.0.1", 0)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    reservation.release()


def _content(pid: int) -> ClusterFile:
    return ClusterFile(
        cluster_id="c",
        bootstrap_servers="127.0.0.1:9092",
        zookeeper="127.0.0.1:2181",
        zookeeper_pid=1,
        controllers=(ControllerEntry(2, "127.0.0.1", 9091, True, 9404, 40123, "http://127.0.0.1:40123/"),),
        brokers=(
            BrokerEntry(
                1, "127.0.0.1", 9092, pid, ("/d/broker-1/0",), listeners={"PLAINTEXT": "127.0.0.1:9092"}
            ),
        ),
    )


def test_the_cluster_file_has_the_fields_that_tools_rely_on(tmp_path):
    write_cluster_file(tmp_path / "cluster.json", _content(4711))
    assert json.loads((tmp_path / "cluster.json").read_text()) == {
        "cluster_id": "c",
        "bootstrap_servers": "127.0.0.1:9092",
        "zookeeper": "127.0.0.1:2181",
        "zookeeper_pid": 1,
        "controllers": [
            {
                "pid": 2,
                "host": "127.0.0.1",
                "port": 9091,
                "active": True,
                "metrics_port": 9404,
                "web_port": 40123,
                "web_url": "http://127.0.0.1:40123/",
            }
        ],
        "brokers": [
            {
                "id": 1,
                "host": "127.0.0.1",
                "port": 9092,
                "listeners": {"PLAINTEXT": "127.0.0.1:9092"},
                "pid": 4711,
                "log_dirs": ["/d/broker-1/0"],
                "metrics_port": None,
            }
        ],
    }
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


def test_the_publisher_writes_what_changed_and_takes_the_file_away(tmp_path):
    path, pid = tmp_path / "cluster.json", 1
    publisher = Publisher(path, lambda: _content(pid))
    publisher.start()
    assert json.loads(path.read_text())["brokers"][0]["pid"] == 1
    pid = 2
    publisher.announce()
    while json.loads(path.read_text())["brokers"][0]["pid"] != 2:
        pass
    publisher.stop()
    assert not path.exists()


def test_a_publisher_that_never_started_leaves_another_clusters_file_alone(tmp_path):
    path = tmp_path / "cluster.json"
    path.write_text("{}")
    Publisher(path, lambda: _content(1)).stop()
    assert path.exists()
