"""The demo as its user runs it: a process of its own, to the end and interrupted on its way."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

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


def test_the_demo_ends_with_nothing_lost_and_nothing_doubled_and_leaves_no_process(tmp_path) -> None:
    root = tmp_path / "demo"
    process = demo(root)
    output, _ = process.communicate(timeout=350)
    assert process.returncode == 0, output
    assert "Nothing lost, nothing doubled." in output
    assert re.search(r"flights\s+200,000\s+200,000\s+0\s+0\s+yes", output), output
    assert re.search(r"quakes\s+([\d,]+)\s+\1\s+0\s+0\s+yes", output), output
    assert re.search(r"after [\d.]+ s it has caught up: every ISR has 3 members", output), output
    wait_until_gone(root)


@pytest.mark.parametrize("moment", ["1. ", "3. "], ids=["while brokers start", "while the stream runs"])
def test_ctrl_c_ends_the_demo_and_leaves_no_process(tmp_path, moment) -> None:
    root = tmp_path / "demo"
    process = demo(root)
    assert process.stdout is not None
    deadline = time.monotonic() + LINE_TIMEOUT_S
    for line in process.stdout:
        assert time.monotonic() < deadline
        if line.startswith(moment):
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode is not None
    wait_until_gone(root)


def test_a_folder_that_no_demo_made_is_never_emptied(tmp_path) -> None:
    (tmp_path / "precious").write_text("mine")
    process = demo(tmp_path)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "no demo made it" in output
    assert (tmp_path / "precious").read_text() == "mine"
