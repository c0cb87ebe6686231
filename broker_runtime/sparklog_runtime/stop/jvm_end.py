"""Why Spark's JVM ended, said in words: what it wrote last, what to do, and which files say more."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from sparklog.zookeeper.embedded import JAVA_REMEDY
from sparklog_runtime.stop.process_end import end_in_words

LINES_SHOWN: Final = 3
OUTPUT_BYTES_MAX: Final = 1024 * 1024

_REMEDIES: Final[Mapping[str, str]] = {
    "UnsupportedClassVersionError": f"its Java is too old: {JAVA_REMEDY}",
    "JAVA_HOME is not set": f"no Java was found: {JAVA_REMEDY}",
    "/bin/java: No such file": "JAVA_HOME has no bin/java: correct it, or unset it",
    "OutOfMemoryError": "give it more memory, as with --conf spark.driver.memory=2g",
    "Could not reserve enough space": "free memory, or lower spark.driver.memory",
    "insufficient memory for the Java Runtime": "free memory, or lower spark.driver.memory",
    "Could not create the Java Virtual Machine": "correct what it names, in JDK_JAVA_OPTIONS, "
    "JAVA_TOOL_OPTIONS or spark.driver.extraJavaOptions",
}
"""What a JVM writes as it ends, and what to do."""

_KILLED: Final = "if nobody ended it, the machine was short of memory, and dmesg says so"


def output_since(path: Path, start: int) -> str:
    """What was written to a file of output after its first ``start`` bytes; its end, if that is much."""
    if not path.exists():
        return ""
    with path.open("rb") as output:
        output.seek(max(start, path.stat().st_size - OUTPUT_BYTES_MAX))
        return output.read().decode("utf-8", "replace")


def jvm_end_in_words(program: str, status: int, output: str, logs: Iterable[Path]) -> str:
    """For a message. ``output`` is what the JVM wrote; of ``logs`` those that exist are named."""
    parts = [f"{program} {end_in_words(status)}"]
    remedy = next((remedy for sign, remedy in _REMEDIES.items() if sign in output), None)
    if remedy is None and status < 0:
        remedy = _KILLED
    if remedy is not None:
        parts.append(remedy)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    parts.append(f"it wrote: {' / '.join(lines[-LINES_SHOWN:])}" if lines else "it wrote nothing")
    named = " and ".join(str(path) for path in logs if path.exists())
    return "; ".join(parts) + (f" (see {named})" if named else "")
