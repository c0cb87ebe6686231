"""The demo as its user runs it: a process of its own, to the end and interrupted on its way."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(400),
    pytest.mark.skipif(sys.platform != "linux", reason="finds what is left of a demo in /proc"),
]

LINE_TIMEOUT_S = 150.0


def demo(root: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "sparklog.cli.main", "demo", "--root", str(root)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def processes_of(root: Path) -> list[str]:
    """Command lines of whoever was started for this root directory and still runs."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has just ended
        if str(root) in line:
            found.append(line)
    return found


def wait_until_gone(root: Path) -> None:
    deadline = time.monotonic() + 20
    while left := processes_of(root):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@pytest.mark.proof
def test_the_demo_ends_with_nothing_lost_and_nothing_doubled_and_leaves_no_process(tmp_path) -> None:
    root = tmp_path / "demo"
    process = demo(root)
    output, _ = process.communicate(timeout=350)
    assert process.returncode == 0, output
    assert "Nothing lost, nothing doubled." in output
    assert re.search(r"quakes: [\d,]+ rows written so far, Spark .* \(\d+ s\)", output), output
    assert f"sparklog start --brokers 3 --root {root}" in output
    assert re.search(r"flights\s+200,000\s+200,000\s+0\s+0\s+yes", output), output
    assert re.search(r"quakes\s+([\d,]+)\s+\1\s+0\s+0\s+yes", output), output
    assert re.search(r"after [\d.]+ s it has caught up: every ISR has 3 members", output), output
    wait_until_gone(root)


def run_until(process: subprocess.Popen, moment: str) -> None:
    assert process.stdout is not None
    deadline = time.monotonic() + LINE_TIMEOUT_S
    for line in process.stdout:
        assert time.monotonic() < deadline
        if line.startswith(moment):
            return


def test_ctrl_c_while_brokers_start_ends_the_demo_with_130_and_leaves_no_process(tmp_path) -> None:
    root = tmp_path / "demo"
    process = demo(root)
    run_until(process, "1. ")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    wait_until_gone(root)


@pytest.mark.chaos
def test_a_second_demo_in_the_folder_is_refused_and_ctrl_c_in_the_first_is_130(
    tmp_path,
) -> None:
    root = tmp_path / "demo"
    process = demo(root)
    run_until(process, "2. ")
    files = sorted(root.rglob("broker-*"))
    second = demo(root)
    output, _ = second.communicate(timeout=60)
    assert second.returncode == 1
    assert f"is in use by process {process.pid}" in output
    assert set(files) <= set(root.rglob("broker-*"))
    run_until(process, "3. ")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    wait_until_gone(root)


@pytest.mark.proof
def test_a_demo_whose_spark_dies_fails_with_1_and_leaves_no_process(tmp_path) -> None:
    root = tmp_path / "demo"
    process = demo(root)
    run_until(process, "2. ")
    cluster = json.loads((root / "cluster.json").read_text())
    daemon = parent(cluster["brokers"][0]["pid"])
    os.kill(parent(daemon), signal.SIGKILL)
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 1, output
    assert "Spark's JVM was killed by SIGKILL" in output
    wait_until_gone(root)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_folder_that_no_demo_made_is_never_emptied(tmp_path) -> None:
    (tmp_path / "precious").write_text("mine")
    process = demo(tmp_path)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "no demo made it" in output
    assert (tmp_path / "precious").read_text() == "mine"
