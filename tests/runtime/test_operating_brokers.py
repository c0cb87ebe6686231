"""Each command of docs/operating.md on stopping and draining brokers, in its order, on a real cluster."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "operating.md"
pytestmark = [pytest.mark.integration, pytest.mark.proof, pytest.mark.timeout(240)]


def commands() -> list[list[str]]:
    """The lines that begin with ``sparklog brokers``, without their comments."""
    section = PAGE.read_text(encoding="utf-8").split("## Stopping and draining brokers")[1].split("\n## ")[0]
    found = re.findall(r"^    sparklog (brokers .*?)(?:\s+#.*)?$", section, re.MULTILINE)
    return [line.split() for line in found]


def run(root: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sparklog", *words, "--root", str(root)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def brokers(root: Path) -> dict[int, dict[str, object]]:
    listed = json.loads(run(root, ["brokers", "list", "--json"]).stdout)["brokers"]
    return {one["broker_id"]: one for one in listed}


def operations(root: Path) -> list[dict[str, object]]:
    found = json.loads(run(root, ["brokers", "operations", "--json"]).stdout)["operations"]
    assert isinstance(found, list)
    return found


def test_each_command_of_the_page_does_what_it_says(start, tmp_path):
    cluster = start(tmp_path, "--brokers", "4", "--port", "0")
    cluster.wait_ready()
    words = ["topics", "create", "t", "--partitions", "8", "--replication-factor", "3"]
    assert run(tmp_path, words).returncode == 0
    after = {
        "stop": lambda: (brokers(tmp_path)[3]["state"], len(cluster.cluster()["brokers"])) == ("stopped", 3),
        "start": lambda: brokers(tmp_path)[3]["state"] == "serving",
        "restart": lambda: {one["state"] for one in brokers(tmp_path).values()} == {"serving"},
        "drain": lambda: (brokers(tmp_path)[3]["state"], brokers(tmp_path)[3]["replicas"]) == ("drained", 0),
        "remove": lambda: 3 not in brokers(tmp_path),
        "fill": lambda: int(str(brokers(tmp_path)[3]["replicas"])) > 0,
    }
    seen = []
    for line in commands():
        action = line[1]
        if action == "cancel":
            begun = run(tmp_path, ["brokers", "stop", "1", "2", "--accept-unavailable", "--no-wait"])
            assert begun.returncode == 0, begun.stderr
            line = ["brokers", "cancel", str(operations(tmp_path)[-1]["id"])]
        done = run(tmp_path, line)
        has_ended_before = action == "cancel" and done.stderr.rstrip().endswith(
            "has ended: done (INVALID_REQUEST)"
        )
        assert done.returncode == 0 or has_ended_before, (line, done.stderr)
        assert after.get(action, lambda: True)(), (line, brokers(tmp_path))
        seen.append(action)
    assert set(seen) == {*after, "list", "operations", "cancel"}


def test_a_broker_that_was_stopped_stays_stopped_over_a_new_driver(start, tmp_path):
    first = start(tmp_path, "--brokers", "2", "--port", "0")
    first.wait_ready()
    assert run(tmp_path, ["brokers", "stop", "2", "--accept-unavailable"]).returncode == 0
    first.stop()
    second = start(tmp_path, "--brokers", "2", "--port", "0")
    second.wait_ready()
    assert [one["id"] for one in second.cluster()["brokers"]] == [1]
    assert brokers(tmp_path)[2]["wish"] == "stopped"
    assert run(tmp_path, ["brokers", "start", "2"]).returncode == 0
    assert [one["id"] for one in second.cluster()["brokers"]] == [1, 2]
    _, _, err = second.stop()
    assert f"broker 2 stays stopped; start it with: sparklog brokers start 2 --root {tmp_path}" in err
