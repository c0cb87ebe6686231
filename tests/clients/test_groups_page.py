"""docs/groups.md, from top to bottom: every command of the page is copied from it and run, in its order.

A command that stays ends by Ctrl-C at the end of its section. Tables that the page shows must be printed, but
for the broker that coordinates.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparklog.client.group.group_admin import GroupAdmin
from sparklog.testing import InProcessCluster
from tests.pages import DOCS, blocks_of
from tests.waiting import until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("kcat") is None, reason="needs kcat"),
]

PAGE = DOCS / "groups.md"
GROUP = "billing"


class Reader:
    """What a user of the page has: a terminal after the other, and a cluster."""

    def __init__(self, cluster: InProcessCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._server = cluster.bootstrap_servers.partition(",")[0]
        self._staying: list[subprocess.Popen[bytes]] = []
        self.printed = ""

    def run(self, text: str) -> None:
        """Commands that end, each with status 0; what they print is added to ``printed``."""
        done = self._start(["bash", "-euo", "pipefail", "-c", text])
        out, err = done.communicate(timeout=60)
        assert done.returncode == 0, f"{text}\n{out.decode()}\n{err.decode()}"
        self.printed += out.decode()

    def leave_running(self, text: str) -> None:
        """A member more, once the group has it."""
        self._staying.append(self._start(["bash", "-c", f"exec {text}"]))
        until(lambda: len(self._members()) == len(self._staying), "a stable group of all readers")

    def interrupt(self) -> None:
        """Ctrl-C in every terminal with a command that stays; returns when the group is empty."""
        for process in self._staying:
            process.send_signal(signal.SIGINT)
        for process in self._staying:
            process.communicate(timeout=60)
        self._staying.clear()

    def end(self) -> None:
        for process in self._staying:
            process.kill()
            process.communicate()

    def _members(self) -> list[str]:
        group = GroupAdmin(self._cluster.client).describe(GROUP)
        return [one.member_id for one in group.members] if group.group_state == "Stable" else []

    def _start(self, words: list[str]) -> subprocess.Popen[bytes]:
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.Popen(
            [word.replace("127.0.0.1:9092", self._server) for word in words],
            cwd=self._folder,
            env={**os.environ, "PATH": programs},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@contextmanager
def reading(cluster: InProcessCluster, folder: Path) -> Iterator[Reader]:
    reader = Reader(cluster, folder)
    try:
        yield reader
    finally:
        reader.end()


def test_every_command_of_the_page_does_what_the_page_says(cluster: InProcessCluster, tmp_path: Path) -> None:
    section = ""
    with reading(cluster, tmp_path) as reader:
        for block in blocks_of(PAGE):
            if block.section != section:
                reader.interrupt()
                section = block.section
            match block.kind.split():
                case ["bash"]:
                    reader.run(block.text)
                case ["bash", "stays"]:
                    reader.leave_running(block.text)
                case ["text"]:
                    assert without_broker(block.text) in without_broker(reader.printed)
                case ["python"]:
                    (tmp_path / "program.py").write_text(
                        block.text.replace("127.0.0.1:9092", cluster.bootstrap_servers)
                    )
                    reader.run("python program.py")
    assert sorted(re.findall(r"^order (\d+)$", reader.printed, re.MULTILINE), key=int) == [
        str(number) for number in range(1, 101)
    ]
    assert reader.printed.endswith("100\n")


def without_broker(text: str) -> str:
    return re.sub(r"coordinator \d+ \([^)]*\)", "coordinator", text)
