"""The spark-submit command line that `sparklog submit` makes."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sparklog.cli.command import DONE, UsageError, build_parser
from sparklog.model.errors import ConfigError
from sparklog_runtime import submit as entry_point
from sparklog_runtime.start.session import spark_submit_program
from sparklog_runtime.submission.submit_command import submit_command

MASTER = "spark://127.0.0.1:7077"


@pytest.fixture
def settings(tmp_path) -> Path:
    path = tmp_path / "conf" / "server.properties"
    path.parent.mkdir()
    path.write_text("zookeeper.connect=127.0.0.1:2181/c\nlog.dirs=/data/1\n")
    return path


@pytest.fixture
def dry_run(settings, tmp_path, capsys):
    """The words of the command that `--dry-run` prints, behind SPARK_HOME."""

    def run(*arguments: str) -> list[str]:
        given = ["--master", MASTER, "--settings", str(settings), "--brokers", "3"]
        parsed = build_parser(submit_command).parse_args([*given, *arguments, "--dry-run"])
        assert submit_command.run(parsed) == DONE
        out, err = capsys.readouterr()
        assert err == ""
        assert out.count("\n") == 1
        home, *words = shlex.split(out)
        assert home == f"SPARK_HOME={spark_submit_program().parents[1]}"
        return words

    return run


def _conf(words: list[str]) -> dict[str, str]:
    pairs = [words[index + 1] for index, word in enumerate(words) if word == "--conf"]
    return dict(pair.split("=", 1) for pair in pairs)


def test_it_is_sparks_own_program_with_the_entry_point_of_the_package(dry_run, settings, tmp_path):
    words = dry_run("--broker-ids", "4,5,6", "--port", "9192", "--root", str(tmp_path / "root"))
    assert words[:3] == [str(spark_submit_program()), "--master", MASTER]
    behind = words[words.index(entry_point.__file__) :]
    assert behind == [
        *(entry_point.__file__, "--brokers", "3", "--settings", str(settings), "--broker-ids", "4,5,6"),
        *("--port", "9192", "--root", str(tmp_path / "root")),
    ]


def test_what_is_printed_can_be_pasted_whatever_the_paths(dry_run, tmp_path):
    root = tmp_path / "a root's $HOME"
    words = dry_run("--root", str(root), "--conf", "spark.driver.extraJavaOptions=-Da='b c'")
    assert words[words.index("--root") + 1] == str(root)
    pasted = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\n' {shlex.join(words)}"], capture_output=True, text=True, check=True
    )
    assert pasted.stdout.splitlines() == words


def test_driver_and_executors_get_the_python_that_has_sparklog(dry_run, monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    conf = _conf(dry_run())
    assert conf["spark.pyspark.python"] == conf["spark.pyspark.driver.python"] == sys.executable


def test_the_drivers_stack_is_large_enough_for_sparks_regular_expressions(dry_run, tmp_path):
    assert "-Xss16m" in _conf(dry_run("--root", str(tmp_path)))["spark.driver.extraJavaOptions"].split()


def test_another_python_of_the_executors_may_be_named_in_both_of_sparks_ways(dry_run, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/a/bin/python")
    assert _conf(dry_run())["spark.pyspark.python"] == "/opt/a/bin/python"
    conf = _conf(dry_run("--conf", "spark.pyspark.python=/opt/b/bin/python"))
    assert conf["spark.pyspark.python"] == "/opt/b/bin/python"
    assert conf["spark.pyspark.driver.python"] == sys.executable


def test_there_is_an_executor_for_each_broker_whatever_its_size(dry_run):
    assert _conf(dry_run())["spark.cores.max"] == "3"
    assert _conf(dry_run("--conf", "spark.executor.cores=3"))["spark.cores.max"] == "9"
    assert _conf(dry_run("--master", "yarn"))["spark.executor.instances"] == "3"


def test_sparks_log_goes_to_a_file_under_the_root(dry_run, tmp_path):
    conf = _conf(dry_run("--root", str(tmp_path), "--conf", "spark.driver.extraJavaOptions=-Xmx1g"))
    options = conf["spark.driver.extraJavaOptions"]
    assert f"-Dsparklog.spark.log={tmp_path}/logs/spark.log" in options
    assert options.endswith(" -Xmx1g")


def test_files_beside_the_settings_are_used_and_conf_goes_over_them(dry_run, settings):
    spark_file, log4j_file = (
        settings.with_name("spark-defaults.conf"),
        settings.with_name("log4j2.properties"),
    )
    spark_file.write_text("spark.executor.memory 2g\nspark.executor.cores 2\n")
    log4j_file.touch()
    words = dry_run("--conf", "spark.executor.memory=3g")
    assert words[words.index("--properties-file") + 1] == str(spark_file)
    conf = _conf(words)
    assert conf["spark.executor.memory"] == "3g"
    assert "spark.executor.cores" not in conf
    assert conf["spark.cores.max"] == "6"
    assert f"-Dlog4j2.configurationFile={log4j_file.as_uri()}" in conf["spark.driver.extraJavaOptions"]


def test_the_application_is_called_as_it_is_named_or_by_host_and_root(dry_run, tmp_path):
    assert _conf(dry_run("--name", "sparklog-b"))["spark.app.name"] == "sparklog-b"
    assert _conf(dry_run("--root", str(tmp_path)))["spark.app.name"].endswith(f":{tmp_path}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--conf", "min.insync.replicas=2"], "no setting of Spark.*--settings"),
        (["--conf", "spark.submit.deployMode=cluster"], "the driver runs here.*set it to client"),
        (["--conf", "spark.master=yarn"], "leave it out, --master names"),
        (["--conf", "spark.cores.max=2"], "spark.cores.max=3 or more"),
        (["--conf", "spark.executor.cores=many"], "'many' is no number of cores"),
        (["--conf", "spark.speculation=true"], "set spark.speculation=false"),
        (["--broker-ids", "1,2"], "must be 3 different numbers"),
    ],
)
def test_what_could_not_work_is_refused_before_spark_starts(dry_run, arguments, words):
    with pytest.raises(ConfigError, match=words):
        dry_run(*arguments)


def test_a_name_that_is_empty_is_no_name(dry_run):
    with pytest.raises(UsageError, match="--name is empty"):
        dry_run("--name", " ")


def test_without_spark_it_is_said_where_it_was_looked_for(dry_run, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(Exception, match=f"no Spark in {tmp_path}.*SPARK_HOME"):
        dry_run()
