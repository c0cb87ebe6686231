"""What a cluster in the foreground shows when it stops: `stopping` is the last word, whatever fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparklog_runtime.demo.screen import Screen
from sparklog_runtime.voice import Voice

PROGRAM = """
import os, signal, sys, threading
from pathlib import Path
from sparklog_runtime.life.foreground import run_in_foreground
from sparklog_runtime.start.cluster_folders import Layout
from sparklog_runtime.voice import Voice

class Wordless(Exception):
    def __str__(self):
        raise ConnectionError("the JVM is gone")

class Finalized:
    def __del__(self):
        raise Wordless

class Cluster:
    run, failure = "run", None
    layout = Layout.at(Path(sys.argv[1]))

    def __init__(self):
        self.ended = threading.Event()

    def start(self):
        pass

    def wait_ended(self):
        self.ended.wait()

    def stop(self):
        self.ended.set()
        late = threading.Thread(target=self.fail, name="py4j-callbacks")
        late.start()
        for thread in threading.enumerate():
            if thread.name in ("py4j-callbacks", "start"):
                thread.join()
        Finalized()

    def fail(self):
        voice("waiting for Spark (2 s)")
        raise Wordless

def work():
    if sys.argv[2] == "interrupted":
        os.kill(os.getpid(), signal.SIGINT)
        cluster.wait_ended()
    raise Wordless

cluster, voice = Cluster(), Voice()
cluster.layout.logs.mkdir()
sys.exit(run_in_foreground(cluster, work, hush=voice.hush))
"""


def run(root: Path, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(root), how]
    return subprocess.run(command, capture_output=True, check=False, timeout=60, text=True)


def test_after_ctrl_c_nothing_comes_after_stopping_and_every_failure_is_in_the_log(tmp_path: Path) -> None:
    ran = run(tmp_path, "interrupted")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "sparklog: stopping\n")
    log = (tmp_path / "logs/controller.log").read_text()
    assert "the thread py4j-callbacks failed" in log
    assert "Finalized.__del__" in log
    assert "the work in the foreground failed" in log


def test_a_broken_pipe_under_its_words_keeps_no_cluster_from_stopping(tmp_path: Path) -> None:
    """The terminal was closed, or the process at the pipe's other end has died."""
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), "interrupted"]
    ran = subprocess.run(command, stdout=writes, stderr=writes, check=False, timeout=60)
    os.close(writes)
    assert ran.returncode == 0
    log = (tmp_path / "logs/controller.log").read_text()
    assert "could not write a line ([Errno 32] Broken pipe): sparklog: stopping" in log


def test_an_error_that_has_lost_its_words_is_told_by_its_name(tmp_path: Path) -> None:
    ran = run(tmp_path, "alone")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "sparklog: Wordless, which Spark can no longer put into words\n"


def test_a_voice_and_a_screen_that_were_hushed_say_nothing_more(capsys: pytest.CaptureFixture[str]) -> None:
    voice, screen = Voice(), Screen()
    voice("one")
    screen.text("two")
    voice.hush()
    screen.hush()
    voice("three")
    screen.step("four")
    screen.line("five")
    screen.table(["six"], [[6]])
    assert capsys.readouterr() == ("two\n", "sparklog: one\n")
