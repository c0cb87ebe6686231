"""Run the tests again that failed once, each alone, after all others; the last word of ``.ci/run``.

    python -m tests.flakes.again FAILED FLAKY

FAILED is the file of ``tests.flakes.record``. A test that passes now was flaky: a bug, but no reason to
refuse a landing. The output's last block begins with ``flaky:`` and names each such test with its seed, the
load and the first traceback; FLAKY gets the same text. The exit code is 1 if a test failed twice, or 0.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.flakes.record import VARIABLE, FailedTest, read


def run_again(failed: list[FailedTest]) -> list[FailedTest]:
    """The tests that fail a second time. Each runs in a process of its own, with its output shown."""
    twice = []
    for test in failed:
        print(f"again: {test.name}", flush=True)
        if subprocess.run(test.command, check=False).returncode != 0:
            twice.append(test)
    return twice


def shown(flaky: list[FailedTest]) -> str:
    """The block that begins with ``flaky:``."""
    if not flaky:
        return "flaky: none\n"
    lines = [f"flaky: {len(flaky)}, each passed when it was run again, alone"]
    for test in flaky:
        lines += [f"- {test.name}", f"  seed: {test.seed}", f"  load: {test.load:.1f}"]
        lines += [f"  | {line}" for line in test.traceback.splitlines()]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    failed_path, flaky_path = map(Path, arguments)
    os.environ.pop(VARIABLE, None)  # or a second failure would be kept for a third run
    failed = read(failed_path)
    twice = run_again(failed)
    text = shown([test for test in failed if test not in twice])
    flaky_path.parent.mkdir(parents=True, exist_ok=True)
    flaky_path.write_text(text, encoding="utf-8")
    for test in twice:
        print(f"failed twice: {test.name}")
    print(text, end="", flush=True)
    return 1 if twice else os.EX_OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
