"""Why Spark's JVM ended: its last words, a remedy, and files that are there."""

from pathlib import Path

import pytest

from sparklog_runtime.stop.jvm_end import OUTPUT_BYTES_MAX, jvm_end_in_words, output_since


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ("JAVA_HOME is not set\n", "no Java was found: install Java 17 or newer"),
        ("spark-class: line 97: /x/bin/java: No such file or directory", "JAVA_HOME has no bin/java"),
        (
            'Exception in thread "main" java.lang.UnsupportedClassVersionError: org/apache/spark/Main '
            "has been compiled by a more recent version of the Java Runtime",
            "its Java is too old: install Java 17 or newer",
        ),
        ("java.lang.OutOfMemoryError: Java heap space", "--conf spark.driver.memory=2g"),
        (
            "Unrecognized VM option 'NoSuch'\nError: Could not create the Java Virtual Machine.",
            "correct what it names, in JDK_JAVA_OPTIONS",
        ),
    ],
)
def test_what_it_wrote_is_told_with_a_remedy(output: str, remedy: str, tmp_path: Path) -> None:
    told = jvm_end_in_words("Spark's JVM", 1, output, [])
    assert told.startswith("Spark's JVM ended with exit code 1; ")
    assert remedy in told
    assert " / ".join(output.strip().splitlines()) in told


def test_files_that_are_not_there_are_not_named(tmp_path: Path) -> None:
    there, missing = tmp_path / "spark-output.log", tmp_path / "spark.log"
    there.touch()
    told = jvm_end_in_words("Spark's JVM", 3, "", [missing, there])
    assert told == f"Spark's JVM ended with exit code 3; it wrote nothing (see {there})"
    assert "(see" not in jvm_end_in_words("Spark's JVM", 3, "a", [missing])


def test_a_kill_names_the_signal_and_what_may_have_sent_it() -> None:
    told = jvm_end_in_words("Spark's JVM", -9, "1\n2\n\n3\n4\n", [])
    assert told.startswith("Spark's JVM was killed by SIGKILL; if nobody ended it")
    assert told.endswith("it wrote: 2 / 3 / 4")


def test_words_of_an_earlier_run_are_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "spark-output.log"
    assert output_since(path, 0) == ""
    path.write_bytes(b"before\n")
    start = path.stat().st_size
    assert output_since(path, start) == ""
    with path.open("ab") as output:
        output.write(b"now \xff\n")
    assert output_since(path, start) == "now �\n"
    with path.open("ab") as output:
        output.write(b"x" * OUTPUT_BYTES_MAX)
    assert output_since(path, start) == "x" * OUTPUT_BYTES_MAX
