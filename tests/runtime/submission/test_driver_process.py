"""What `sparklog submit` does with its driver, shown on a small program in place of spark-submit.

The driver is a child of the program that stands for Spark's JVM, as it is one of the JVM.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until

JVM = """
import subprocess, sys
command = [sys.executable, "-c", sys.argv[1]]
driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
for line in driver.stdout:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
sys.exit(driver.wait())
"""
DRIVER = """
import os, signal, sys, time
from pathlib import Path
from sparklog_runtime.voice import say
from sparklog_runtime.submission.driver_line import stop_with_submit
root = Path(os.environ["TEST_ROOT"])
def stop(number, frame):
    say("stopping")
    (root / "stopped").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
stop_with_submit()
print("noise of a library", flush=True)
print("sparklog: waiting for brokers 1", flush=True)
print("sparklog is ready: bootstrap.servers=127.0.0.1:1", flush=True)
(root / "pid").write_text(str(os.getpid()))
while True:
    time.sleep(60)
"""
COMMAND = """
import sys
from sparklog_runtime.start.cluster_folders import Layout
from sparklog_runtime.submission.driver_process import DriverProcess
from sparklog_runtime.submission.spark_command import SparkCommand
root, jvm, driver = sys.argv[1:]
command = SparkCommand((sys.executable, "-c", jvm, driver), {"TEST_ROOT": root}, {})
sys.exit(DriverProcess(command, Layout.at(root)).run())
"""


@pytest.fixture
def submit(tmp_path):
    """Runs it; with ``jvm`` and ``driver`` as Python programs."""
    started = []

    def run(driver: str = DRIVER, jvm: str = JVM) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, str(tmp_path), jvm, driver],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def _driver_pid(root: Path) -> int:
    until(lambda: (root / "pid").exists() and (root / "pid").read_text())
    return int((root / "pid").read_text())


def _has_ended(pid: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_each_signal_stops_the_driver_tidily_and_is_a_proper_end(submit, tmp_path, number):
    process = submit()
    pid = _driver_pid(tmp_path)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == "sparklog is ready: bootstrap.servers=127.0.0.1:1\n"
    assert err.splitlines() == ["sparklog: waiting for brokers 1", "sparklog: stopping"]
    assert (tmp_path / "stopped").exists()
    until(lambda: _has_ended(pid))


def test_what_is_none_of_our_lines_goes_to_a_file(submit, tmp_path):
    process = submit()
    _driver_pid(tmp_path)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert "noise" not in out + err
    assert "noise of a library\n" in (tmp_path / "logs" / "spark-output.log").read_text()


def test_a_terminal_that_is_gone_hinders_no_stop(submit, tmp_path):
    process = submit()
    _driver_pid(tmp_path)
    process.stdout.close()
    process.stderr.close()
    process.terminate()
    assert process.wait(60) == 0
    assert (tmp_path / "stopped").exists()


def test_a_command_that_is_killed_takes_its_driver_along_tidily(submit, tmp_path):
    process = submit()
    pid = _driver_pid(tmp_path)
    process.kill()
    until(lambda: (tmp_path / "stopped").exists() and _has_ended(pid))


def test_a_signal_before_there_is_a_driver_ends_it_at_once(submit, tmp_path):
    process = submit(
        jvm="import os, time; open(os.environ['TEST_ROOT'] + '/pid', 'w').write('1'); time.sleep(60)"
    )
    _driver_pid(tmp_path)
    process.terminate()
    process.communicate(timeout=10)
    assert process.returncode == 0


def test_it_waits_for_a_driver_whose_jvm_was_killed(submit, tmp_path):
    slow = DRIVER.replace('(root / "stopped").touch()', 'time.sleep(1); (root / "stopped").touch()')
    process = submit(driver=slow)
    pid = _driver_pid(tmp_path)
    jvm = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(jvm, signal.SIGKILL)
    os.kill(pid, signal.SIGTERM)  # as the driver itself does, which sees its parent end
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert (tmp_path / "stopped").exists()
    assert "sparklog: spark-submit was killed by SIGKILL\n" in err
    assert f"{tmp_path}/logs/spark-output.log" in err
    assert "spark.log" not in err  # which there is not


def test_a_driver_that_could_not_stop_tidily_is_a_failure(submit, tmp_path):
    process = submit(driver=DRIVER.replace("sys.exit(0)", "os._exit(1)"))
    _driver_pid(tmp_path)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 1


@pytest.mark.parametrize(("status", "expected"), [(0, 0), (1, 1), (2, 2), (77, 1)])
def test_the_drivers_exit_status_is_ours(submit, status, expected):
    process = submit(driver=f"import sys; print('sparklog: because', flush=True); sys.exit({status})")
    _, err = process.communicate(timeout=60)
    assert process.returncode == expected
    assert err.startswith("sparklog: because\n")


def test_a_spark_submit_that_ends_without_a_word_of_ours_is_quoted(submit):
    process = submit(jvm="import sys; print('Exception: no such option', file=sys.stderr); sys.exit(2)")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "spark-submit ended with exit code 2; it wrote: Exception: no such option" in err
