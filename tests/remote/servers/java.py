"""Java's servers of `make remote`: where their jars are, and how their processes start and end."""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pyspark
import pytest

CACHE = Path(
    os.environ.get("SPARKLOG_REMOTE_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparklog-remote"
)
SPARK_JARS = Path(pyspark.__file__).parent / "jars"
OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def jars(name: str) -> Path:
    """The folder of a server's jars. Skips, with the reason, where they could not be fetched."""
    if shutil.which("java") is None:
        pytest.skip(f"{name} was not run: there is no java")
    if not (CACHE / name).is_dir():
        missing = CACHE / "missing" / name
        why = missing.read_text().strip() if missing.exists() else "scripts/remote-setup fetches it"
        pytest.skip(f"{name} was not run: {why}")
    return CACHE / name


class JavaProcess:
    """A server that is started, paused, killed and ended."""

    def __init__(self, class_path: Sequence[object], main: Sequence[object], log: Path) -> None:
        self._log = log
        words = ["java", *OPTIONS, "-cp", ":".join(map(str, class_path)), *map(str, main)]
        with log.open("ab") as output:
            self._process = subprocess.Popen(words, stdout=output, stderr=output)

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """By SIGKILL: what was synced must survive it."""
        self._process.kill()
        self._process.wait()

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def __str__(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]
