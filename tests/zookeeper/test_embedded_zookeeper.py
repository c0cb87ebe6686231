import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sparklog.model.zookeeper import Node, ZooKeeperError
from sparklog.zookeeper.embedded import EmbeddedZooKeeper, find_jars_dir
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

pytestmark = pytest.mark.integration

DEADLINE_S = 60

PARENT = """
import sys, threading
from sparklog.zookeeper.embedded import EmbeddedZooKeeper
server = EmbeddedZooKeeper(sys.argv[1])
starter = threading.Thread(target=server.start)
starter.start()
starter.join()
print(server.pid, flush=True)
sys.stdin.read()
"""


def wait_until_gone(pid: int) -> bool:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def read(server: EmbeddedZooKeeper, path: str) -> Node | None:
    with KazooZooKeeper(server.connect_string) as client:
        return client.start(15_000).get(path)


def write(server: EmbeddedZooKeeper, path: str, data: bytes) -> None:
    with KazooZooKeeper(server.connect_string) as client:
        client.start(15_000).create(path, data)


def test_it_serves_when_start_returns_and_is_gone_when_stop_does(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(tmp_path)
    assert server.pid is None
    server.start()
    pid = server.pid
    assert pid is not None
    assert server.port > 0
    assert read(server, "/zookeeper") is not None
    assert server.start().pid == pid, "a second start changes nothing"
    server.stop()
    assert server.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    server.stop()
    server.kill()


def test_its_data_and_port_stay_over_a_sigkill_and_a_clean_restart(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path) as server:
        port = server.port
        write(server, "/killed", b"1")
        server.kill()
        assert not server.is_running
        server.start()
        write(server, "/clean", b"2")
    with server:
        found = [read(server, "/killed"), read(server, "/clean")]
        assert ([node and node.data for node in found], server.port) == ([b"1", b"2"], port)


def test_a_server_that_somebody_killed_is_noticed(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path) as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        server.kill()
        assert server.pid is None


def test_a_port_in_use_is_refused_by_its_number(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ZooKeeperError, match=f"127.0.0.1:{port}: Address already in use"):
            EmbeddedZooKeeper(tmp_path, port).start()


def test_a_directory_in_use_is_refused_with_the_process_that_holds_it(tmp_path: Path) -> None:
    with (
        EmbeddedZooKeeper(tmp_path) as holder,
        pytest.raises(ZooKeeperError, match=rf"in use by another ZooKeeper \(process {holder.pid}\)"),
    ):
        EmbeddedZooKeeper(tmp_path).start()


def test_a_server_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "version-2").write_text("a file where ZooKeeper needs a directory")
    with pytest.raises(ZooKeeperError, match=r"ended at its start with exit status \d+; (?s:.*)version-2"):
        EmbeddedZooKeeper(tmp_path).start()


def test_a_directory_may_have_any_name_under_any_locale(tmp_path: Path) -> None:
    directory = tmp_path / "rü 世界"
    program = (
        "import sys; from sparklog.zookeeper.embedded import EmbeddedZooKeeper; "
        "EmbeddedZooKeeper(sys.argv[1]).start().stop()"
    )
    command = [sys.executable, "-c", program, str(directory)]
    subprocess.run(command, check=True, timeout=DEADLINE_S, env={**os.environ, "LC_ALL": "C"})
    assert (directory / "version-2").is_dir()
    assert [path.name for path in tmp_path.iterdir()] == [directory.name]


def test_data_that_an_earlier_release_put_elsewhere_is_moved_here(tmp_path: Path) -> None:
    directory, elsewhere = tmp_path / "rü", tmp_path / "rÃ¼"
    (elsewhere / "version-2").mkdir(parents=True)
    (elsewhere / "version-2" / "log.1").write_bytes(b"epochs")
    directory.mkdir()
    server = EmbeddedZooKeeper(directory)
    server._take_misplaced_data()
    assert (directory / "version-2" / "log.1").read_bytes() == b"epochs"
    (elsewhere / "version-2").mkdir()
    (elsewhere / "version-2" / "log.1").write_bytes(b"of another")
    server._take_misplaced_data()
    assert (directory / "version-2" / "log.1").read_bytes() == b"epochs"


def test_a_folder_without_jars_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ZooKeeperError, match=r"has no zookeeper-\[0-9\]"):
        EmbeddedZooKeeper(tmp_path / "data", jars_dir=tmp_path).start()


def test_the_jars_are_found_without_importing_pyspark() -> None:
    code = (
        "import sys; from sparklog.zookeeper.embedded import find_jars_dir; print(find_jars_dir());"
        "sys.exit('pyspark' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == str(find_jars_dir())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_it_dies_with_its_parent_but_not_with_the_thread_that_started_it(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())  # the starting thread has ended by now
        assert Path(f"/proc/{pid}").exists()
        with pytest.raises(ZooKeeperError, match=f"process {pid}"):
            EmbeddedZooKeeper(tmp_path).start()
        parent.kill()
    assert wait_until_gone(pid)
    with EmbeddedZooKeeper(tmp_path) as successor:
        assert successor.is_running
