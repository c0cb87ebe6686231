"""A handle on the Spark driver under measurement (``bench.spark_worker``)."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from bench.clusters import Cluster
from bench.machine import CACHE, cpu_of, descendants, end, launch

ORDER_TIMEOUT_S: Final = 400.0
ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ":".join([str(ROOT), str(ROOT / "datasource")])
"""Before what is installed beside that PySpark, which may be another checkout's."""
CONNECTOR_JARS: Final = CACHE / "connector"
CONNECTOR_PYTHON: Final = CACHE / "venv/bin/python"


def has_connector() -> bool:
    return CONNECTOR_JARS.is_dir() and (CACHE / "venv/.installed").exists()


def sources_of(command: Path) -> str:
    """A PYTHONPATH: where the environment of a ``sparklog`` command has the package and the data source."""
    program = "import sparklog, pyspark_sparklog as d; print(sparklog.__file__, d.__file__)"
    told = subprocess.run(
        [command.with_name("python"), "-c", program], capture_output=True, text=True, check=True, cwd="/"
    )
    return ":".join(str(Path(file).parents[1]) for file in told.stdout.split())


class Spark:
    """One local Spark; Kafka's connector is in it where it could be had.

    ``sources``: a PYTHONPATH with the data source, by default this checkout's.
    """

    def __init__(self, sources: str = SOURCES) -> None:
        self._sources = sources

    def __enter__(self) -> "Spark":
        python = str(CONNECTOR_PYTHON) if has_connector() else sys.executable
        jars = ",".join(str(jar) for jar in sorted(CONNECTOR_JARS.glob("*.jar"))) if has_connector() else ""
        worker = str(Path(__file__).with_name("spark_worker.py"))
        self._log = CACHE / "spark-worker.log"
        CACHE.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = launch(
                ["env", f"PYSPARK_PYTHON={python}", f"PYTHONPATH={self._sources}", python, worker, jars],
                self._log,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.version = self.ask("hello")["pyspark"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            end(self._process, 5)

    def ask(self, what: str, **order: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **order}) + "\n")
        self._process.stdin.flush()
        watchdog = threading.Timer(ORDER_TIMEOUT_S, self._process.kill)
        watchdog.start()
        try:
            for line in self._process.stdout:
                if line.startswith("@@"):
                    answer: dict[str, Any] = json.loads(line[2:])
                    if "error" in answer:
                        raise RuntimeError(f"Spark, asked to {what}: {answer['error']}")
                    return answer
        finally:
            watchdog.cancel()
        raise RuntimeError(f"Spark ended, or was ended after {ORDER_TIMEOUT_S:.0f} s, while asked to {what}")

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds of the JVM, and of Python: the driver's, and the workers', which the JVM starts."""
        programs = descendants(self._process.pid)
        jvm_s = cpu_of((pid for pid, name in programs.items() if name == "java"), with_ended=False)
        return {"JVM": jvm_s, "Python": cpu_of(programs) - jvm_s}


def form_of(cluster: Cluster) -> str:
    """The data source for a cluster's topics."""
    return "sparklog" if cluster.name == "sparklog" else "kafka"
