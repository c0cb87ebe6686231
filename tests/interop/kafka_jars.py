"""Apache Kafka's jars, which the benchmarks fetch too."""

import os
import shutil
from pathlib import Path

import pytest

from tests.interop.clients import HERE

JARS = (
    Path(
        os.environ.get("SPARKLOG_BENCH_CACHE")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparklog-bench"
    )
    / "kafka"
)
OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def java() -> list[str]:
    """The beginning of a command line that runs a class of Kafka's."""
    if not JARS.is_dir() or shutil.which("java") is None:
        pytest.skip("Apache Kafka's jars are not here: scripts/clients-setup fetches them")
    # The tests set that variable for all JVMs. A tool would write a note of it beside what it has to say.
    without_note = ["env", "-u", "JDK_JAVA_OPTIONS"]
    return [*without_note, "java", *OPTIONS, "-cp", f"{HERE / 'java'}:{JARS}/*"]
