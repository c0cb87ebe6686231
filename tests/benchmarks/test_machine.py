"""What a benchmark sees of processes."""

import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench.machine import cpu_of, descendants

WAITS = "import sys; sys.stdin.read()"


def test_the_cpu_of_a_process_is_that_of_its_ended_children_too() -> None:
    works = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(20_000_000))']); "
    with subprocess.Popen([sys.executable, "-c", works + WAITS], stdin=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while cpu_of([process.pid]) < 0.1:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert cpu_of([process.pid], with_ended=False) < cpu_of([process.pid])
        assert process.stdin is not None
        process.stdin.close()
    assert cpu_of([process.pid]) == 0, "it has ended"


def test_descendants_are_the_process_and_all_below_it() -> None:
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WAITS!r}])"
    with subprocess.Popen([sys.executable, "-c", starts], stdin=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while len(found := descendants(process.pid)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert process.pid in found
        assert all(found.values()), "each has its program's name"
        assert process.stdin is not None
        process.stdin.close()
