"""What a cluster of its own is told, by file and by arguments."""

import argparse
from pathlib import Path

import pytest

from sparklog.model.errors import ConfigError
from sparklog_runtime.settings.hosts_file import HostProperties
from sparklog_runtime.settings.properties import read_properties
from sparklog_runtime.submission.driver import add_cluster_arguments, cluster_options


def _options(settings: str, tmp_path: Path):
    path = tmp_path / "server.properties"
    path.write_text(settings)
    parser = argparse.ArgumentParser()
    add_cluster_arguments(parser)
    args = parser.parse_args(["--brokers", "3", "--settings", str(path), "--root", str(tmp_path)])
    return cluster_options(args, "sparklog-a")


def test_no_brokers_are_refused_because_a_standby_controller_needs_no_executors(capsys):
    parser = argparse.ArgumentParser()
    add_cluster_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--brokers", "0", "--settings", "f"])
    assert "'0' is not a whole number from 1 on" in capsys.readouterr().err


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


def test_the_hosts_file_lies_beside_the_settings_unless_its_path_is_absolute(tmp_path):
    (tmp_path / "hosts").write_text("* rack=a\n")
    text = "zookeeper.connect=zk:2181\nlog.dirs=/d\nhosts.file="
    assert _options(text + "hosts\n", tmp_path).hosts() == {"*": HostProperties("a")}
    assert _options(text + f"{tmp_path}/hosts\n", tmp_path).hosts() == {"*": HostProperties("a")}
    assert _options(text + "\n", tmp_path).hosts() == {}


def test_a_cluster_of_its_own_needs_zookeeper_and_absolute_log_roots(tmp_path):
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        _options("log.dirs=/d\n", tmp_path)
    with pytest.raises(ConfigError, match=r"log\.dirs=data must list absolute"):
        _options("zookeeper.connect=zk:2181\nlog.dirs=data\n", tmp_path)
