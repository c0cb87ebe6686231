"""A standalone Spark of the installed package: a master, and workers that are started one by one."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from sparklog_runtime.start.session import spark_home
from tests.runtime.watched import WATCH, watched

PYTHON = "python-of-this-host"
"""A name that is another Python on each worker: an executor looks for it on its worker's PATH."""


class Standalone:
    """Each worker has a folder of its own. ``processes`` finds executors, and what they started, too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        command = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
        self.url = self._run(command, folder / "master.log", "Starting Spark master at ")

    def add_worker(self, name: str, cores: int, python: str) -> Path:
        """Start a worker whose ``PYTHON`` is ``python``; returns its work directory."""
        folder = self.folder / name
        folder.mkdir()
        (folder / PYTHON).write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        (folder / PYTHON).chmod(0o755)
        sizes = ["--host", "127.0.0.1", "-c", str(cores), "-m", "3g", "--work-dir", str(folder / "work")]
        command = ["org.apache.spark.deploy.worker.Worker", *sizes, self.url]
        self._run(command, folder / "worker.log", "Successfully registered with master", f"{folder}:")
        return folder / "work"

    def decommission_worker(self) -> None:
        """What decommission.sh does to the worker that was started last."""
        self._processes[-1].send_signal(signal.SIGPWR)

    def stop_worker(self) -> None:
        """Stop the worker that was started last."""
        self._end(self._processes.pop())

    def processes(self) -> list[int]:
        """Every living process that descends from master and workers, wherever it hangs now."""
        return watched(self.folder)

    def stop(self) -> None:
        while self._processes:
            self.stop_worker()

    def _run(self, command: list[str], log: Path, words: str, first_path: str = "") -> str:
        """Run until the log has the words; returns what follows them on their line.

        The first ``python3`` of its path is the system's, which has no sparklog.
        """
        path = f"{first_path}/usr/bin:/bin:{Path(shutil.which('java') or '').parent}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(spark_home() / "bin" / "spark-class"), *command],
                stdout=output,
                stderr=output,
                env={
                    "PATH": path,
                    "HOME": os.environ.get("HOME", "/"),
                    "SPARK_HOME": str(spark_home()),
                    "JDK_JAVA_OPTIONS": os.environ["JDK_JAVA_OPTIONS"],
                    "SPARK_WORKER_OPTS": "-Dspark.decommission.enabled=true",
                    WATCH: str(self.folder),
                },
            )
        self._processes.append(process)
        while words not in (text := log.read_text()):
            assert process.poll() is None, text
            time.sleep(0.02)
        return text.split(words, 1)[1].split("\n")[0].strip()

    @staticmethod
    def _end(process: "subprocess.Popen[bytes]") -> None:
        process.terminate()
        process.wait(30)
