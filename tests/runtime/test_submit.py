"""What a cluster of its own is told, by file and by arguments."""

from pathlib import Path

import pytest

from sparklog.model.config import check_broker_settings
from sparklog.model.errors import ConfigError
from sparklog_runtime import submit
from sparklog_runtime.properties import parse_properties, read_properties
from sparklog_runtime.settings_check import settings_problems

CONF = Path(__file__).parents[2] / "conf"


def _options(settings: str, tmp_path: Path):
    path = tmp_path / "server.properties"
    path.write_text(settings)
    args = submit._parser().parse_args(["--brokers", "3", "--settings", str(path), "--root", str(tmp_path)])
    return submit.cluster_options(args, "sparklog-a")


def test_properties_have_comments_joined_lines_and_equals_signs_in_values():
    text = "# c\n! c\n\n a = 1 \nb=x\\\n   y\nc=d=e\n"
    assert parse_properties(text) == {"a": "1", "b": "xy", "c": "d=e"}


def test_a_line_that_is_no_setting_is_named(tmp_path):
    (tmp_path / "f").write_text("a=1\nnonsense\n")
    with pytest.raises(ConfigError, match=r"f: line 2: 'nonsense'"):
        read_properties(tmp_path / "f")


def test_log_roots_become_directories_per_broker(tmp_path):
    options = _options("zookeeper.connect=zk:2181/x\nlog.dirs=/d/1, /d/{2}/\nnum.io.threads=3\n", tmp_path)
    assert [pattern.format(id=7) for pattern in options.log_dir_patterns] == [
        "/d/1/broker-7",
        "/d/{2}/broker-7",
    ]
    assert options.zookeeper == "zk:2181/x"
    assert options.settings == {"num.io.threads": "3"}
    assert options.application == "sparklog-a"


def test_a_cluster_of_its_own_needs_zookeeper_and_absolute_log_roots(tmp_path):
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        _options("log.dirs=/d\n", tmp_path)
    with pytest.raises(ConfigError, match=r"log\.dirs=data must list absolute"):
        _options("zookeeper.connect=zk:2181\nlog.dirs=data\n", tmp_path)


def test_the_sample_settings_are_all_known():
    settings = read_properties(CONF / "server.properties")
    assert check_broker_settings(settings).values["min.insync.replicas"] == 2
    commented = "\n".join(
        line[1:] for line in (CONF / "server.properties").read_text().splitlines() if line[:2].strip("#")
        and line.startswith("#") and line[1] != " " and "=" in line
    )  # fmt: skip
    check_broker_settings(parse_properties(commented))


def test_the_sample_spark_settings_pass_the_check():
    lines = (CONF / "spark-defaults.conf").read_text().splitlines()
    conf = dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
    assert settings_problems(conf, "spark://host:7077", 3) == []
