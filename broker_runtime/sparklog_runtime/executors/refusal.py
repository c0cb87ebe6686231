"""Why a broker's job failed on an executor, in words: which host, which value, and what to change.

Two sources: the environment that a task found (``environment``), and Spark's account of a failed job, a text
of many lines that names host and cause in some of them.
"""

import re
from collections.abc import Mapping
from typing import Final

from sparklog.model.errors import ConfigError, SparklogError, UnsafeStartError
from sparklog_runtime.executors.environment import NOTHING

_ERROR_LINE: Final = re.compile(r"^(?:Caused by: )?([\w.]*(?:Error|Exception|Exit): .+)$", re.MULTILINE)
_WRAPPERS: Final = ("py4j.", "org.apache.spark.SparkException: Job aborted", "org.apache.spark.api.python")
_HOST: Final = re.compile(r"\(TID \d+\) \((\S+) executor \S+\)")
_PYTHON_MISMATCH: Final = re.compile(
    r"Python in worker has different version: (\d+\.\d+) than that in driver: (\d+\.\d+)"
)
_NO_PYTHON: Final = re.compile(r'Cannot run program "([^"]+)"')
_NO_SPARKLOG: Final = re.compile(r"No module named '(?:sparklog|sparklog_runtime)\b")
_KINDS: Final = {f"{one.__module__}.{one.__name__}: ": one for one in (ConfigError, UnsafeStartError)}
_WORDS_MAX: Final = 500


def environment_refusal(found: Mapping[str, str], wanted: Mapping[str, str]) -> ConfigError:
    """What is wrong with an executor's environment; both as ``environment`` gives them."""
    host, executable = found["host"], found["executable"]
    if found["python"] != wanted["python"]:
        return _other_python(host, found["python"], wanted["python"], executable)
    if found["sparklog"] == NOTHING:
        return _no_sparklog(host, executable)
    name = "sparklog" if found["sparklog"] != wanted["sparklog"] else "pyspark"
    return ConfigError(
        f"host {host} has {name} {found[name]} in {executable}, the driver has {wanted[name]}: install "
        f"{name} {wanted[name]} there, or name another Python with spark.pyspark.python"
    )


def job_failure(text: str) -> SparklogError:
    """Spark's account of a failed job as an error of ours: a ConfigError where trying again cannot help."""
    found = _HOST.search(text)
    host = found[1] if found else "of an executor"
    mismatch = _PYTHON_MISMATCH.search(text)
    if mismatch:
        return _other_python(host, mismatch[1], mismatch[2], "")
    program = _NO_PYTHON.search(text)
    if program:
        return ConfigError(
            f"host {host} has no Python {program[1]}: install it there with sparklog in it, or name another "
            "that every host has with spark.pyspark.python"
        )
    if _NO_SPARKLOG.search(text):
        return _no_sparklog(host, "the executors' Python")
    cause = cause_in(text)
    kind: type[SparklogError] = SparklogError
    for prefix, one in _KINDS.items():
        if cause.startswith(prefix):
            kind, cause = one, cause.removeprefix(prefix)
    return kind(f"{cause} (host {host})" if found else cause)


def cause_in(text: str) -> str:
    """The line of Spark's account of a failed job that says why it failed."""
    python = text.rpartition("PythonException: Traceback")[2]
    for found in _ERROR_LINE.finditer(python):
        if not found[1].startswith(_WRAPPERS):
            return found[1][:_WORDS_MAX]
    return text.strip().splitlines()[0][:_WORDS_MAX] if text.strip() else "no reason given"


def _other_python(host: str, has: str, wanted: str, executable: str) -> ConfigError:
    where = f" ({executable})" if executable else ""
    return ConfigError(
        f"host {host} has Python {has}{where}, the driver has {wanted}: name a Python {wanted} that every "
        "host has with spark.pyspark.python"
    )


def _no_sparklog(host: str, executable: str) -> ConfigError:
    return ConfigError(
        f"host {host} has no sparklog in {executable}: install the driver's version there, or name the "
        "Python that has it with spark.pyspark.python"
    )
