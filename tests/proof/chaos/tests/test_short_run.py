"""The short version of `make chaos`: real processes and clients, faults that need no root, and the judge."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.machines import shim

RUN = Path(__file__).parents[1] / "run.py"

UPON_SPARK = ("kill-leader", "pause-leader-1x", "kill-all", "kill-controller")
CALLS_THAT_FAIL = ("sync-fails", "write-fails", "disk-full")
CRASH_POINTS = ("crash-point", "crash-point-in-start")
OF_THE_SHIM = (*CALLS_THAT_FAIL, *CRASH_POINTS)
OUTSIDE_OF_SPARK = (
    *CALLS_THAT_FAIL,
    "zombie-elsewhere",
    *CRASH_POINTS,
    "pause-zookeeper-1x",
    "kill-zookeeper",
    "pause-controller-1x",
    "empty-disk",
)


def _run(out, kinds, *options):
    """These faults in this order, judged; the report, and of each kind in words whom it struck."""
    command = [sys.executable, str(RUN), "--out", str(out), "--in-order", "--only", *kinds]
    command += options
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((out / "report.json").read_text())
    assert report["verdict"] == "CLEAN"
    assert report["records"] > 0
    assert set(report["sends"]) >= {"ok"}
    struck = {window["name"]: window["what"] for window in report["windows_in_full"]}
    assert {*struck, *report["not_run"]} == set(kinds), done.stdout + done.stderr
    return report, struck


@pytest.mark.proof
@pytest.mark.integration
@pytest.mark.timeout(600)
def test_clients_lose_nothing_while_processes_are_killed_and_paused(tmp_path):
    report, struck = _run(tmp_path / "out", UPON_SPARK, "--spark", "local", "--seed", "6", "--rate", "80")
    assert report["not_run"] == {}
    assert re.match("kill-all: [23] times: all brokers", struck["kill-all"])


@pytest.mark.chaos
@pytest.mark.integration
@pytest.mark.timeout(600)
def test_clients_lose_nothing_under_faults_of_disks_and_zookeeper_without_root(tmp_path):
    out = tmp_path / "out"
    options = ("--spark", "none", "--places", "plain", "--seed", "36982", "--rate", "60")
    report, struck = _run(out, OUTSIDE_OF_SPARK, *options)
    if (why := shim.probe()) is not None:
        assert report["not_run"] == dict.fromkeys(OF_THE_SHIM, why)
        pytest.skip(f"not run: {', '.join(OF_THE_SHIM)}: {why}; the other faults are judged, and clean")
    assert report["not_run"] == {}
    assert "fail with EIO, first of" in struck["write-fails"]
    assert "a sync fails with EIO, first of" in struck["sync-fails"]
    assert "no room after" in struck["disk-full"]
    assert "beside its replacement" in struck["zombie-elsewhere"]
    assert {point["call"] for point in report["crash_points"] if point["is_reached"]}
    assert "ended before" in (out / "report.txt").read_text()
