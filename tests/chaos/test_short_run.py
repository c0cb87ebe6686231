"""The short version of `make chaos`: real processes and clients, signals and crash points, and the judge."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from chaos import shim

RUN = Path(__file__).with_name("run.py")
KINDS = ("kill-leader", "pause-leader-1x", "kill-all", "kill-controller")


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_clients_see_nothing_lost_doubled_or_reordered_while_processes_are_killed_and_paused(tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, str(RUN), "--out", str(out), "--spark", "local", "--seed", "3"]
    command += ["--windows", "4", "--pairs", "0", "--rate", "80", "--only", *KINDS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((out / "report.json").read_text())
    assert (report["verdict"], report["windows"]) == ("CLEAN", 4)
    assert report["records"] > 0
    assert set(report["sends"]) >= {"ok"}


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_clients_see_nothing_lost_while_brokers_are_killed_at_calls_that_change_files(tmp_path):
    if (why := shim.probe()) is not None:
        pytest.skip(f"not run: {why}")
    out = tmp_path / "out"
    command = [sys.executable, str(RUN), "--out", str(out), "--spark", "none", "--places", "plain"]
    command += ["--seed", "1", "--windows", "2", "--pairs", "0", "--rate", "60"]
    command += ["--only", "crash-point", "crash-point-in-start"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((out / "report.json").read_text())
    assert (report["verdict"], report["windows"]) == ("CLEAN", 2)
    assert sum(point["is_reached"] for point in report["crash_points"]) >= 2
    assert "ended before" in (out / "report.txt").read_text()
