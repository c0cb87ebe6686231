"""`sparklog conf DIR`: the settings files of the package, and what is in them."""

from pathlib import Path

import pytest

from sparklog.cli.command import DONE, build_parser
from sparklog.model.errors import SparklogError
from sparklog.model.settings.config import check_broker_settings
from sparklog.model.settings.settings_table import BROKER_SETTINGS
from sparklog.model.settings.settings_text import parse_properties, parse_spark_properties
from sparklog_runtime.settings.conf_files import CONF_FILES, cluster_spark_conf, spark_log_options
from sparklog_runtime.settings.properties import read_properties
from sparklog_runtime.settings.settings_check import settings_problems
from sparklog_runtime.start.cluster_folders import Layout
from sparklog_runtime.start.cluster_options import ClusterOptions, default_conf
from sparklog_runtime.submission.conf_command import conf_command, write_conf_files

CONF = Path(__file__).parents[3] / "conf"
CLUSTER = "spark://10.0.0.1:7077"


def _uncommented(text: str) -> str:
    """With every commented setting switched on: a ``#`` directly before a name begins one."""
    lines = text.splitlines()
    return "\n".join(line[1:] if line[:1] == "#" and line[1:2].isalpha() else line for line in lines)


def test_it_writes_the_files_of_the_package(tmp_path, capsys):
    args = build_parser(conf_command).parse_args([str(tmp_path / "made" / "conf")])
    assert conf_command.run(args) == DONE
    for name in CONF_FILES:
        assert (tmp_path / "made" / "conf" / name).read_bytes() == (CONF / name).read_bytes()
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("sparklog: ") for line in lines)
    assert str(tmp_path / "made" / "conf" / "server.properties") in lines[0]


def test_it_overwrites_no_file_and_then_writes_none(tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("mine")
    with pytest.raises(SparklogError, match=r"spark-defaults\.conf would be overwritten"):
        write_conf_files(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["spark-defaults.conf"]
    assert (tmp_path / "spark-defaults.conf").read_text() == "mine"


def test_every_setting_of_brokers_in_it_is_known_also_those_commented_out():
    settings = read_properties(CONF / "server.properties")
    assert check_broker_settings(settings).values["min.insync.replicas"] == 2
    check_broker_settings(parse_properties(_uncommented((CONF / "server.properties").read_text())))


def test_a_commented_setting_of_brokers_shows_its_default():
    text = (CONF / "server.properties").read_text()
    active = parse_properties(text)
    shown = {
        name: value for name, value in parse_properties(_uncommented(text)).items() if name not in active
    }
    assert len(shown) > 10
    for name, value in check_broker_settings(shown).values.items():
        assert (name, value) == (name, BROKER_SETTINGS[name].default)


def test_start_sets_on_a_cluster_what_the_file_for_spark_says(tmp_path):
    options = ClusterOptions(root=tmp_path, brokers=3, master=CLUSTER, zookeeper="127.0.0.1:2181")
    conf = default_conf(options, Layout.at(tmp_path))
    assert conf.items() >= cluster_spark_conf().items()
    beside = {name for name in conf if name not in cluster_spark_conf()}
    assert beside == {
        "spark.app.name",
        "spark.cores.max",
        "spark.driver.host",
        "spark.local.dir",
        "spark.sql.catalogImplementation",
        "spark.sql.warehouse.dir",
        "spark.ui.enabled",
    }


def test_the_file_for_spark_passes_the_check_also_with_all_of_it_switched_on():
    text = (CONF / "spark-defaults.conf").read_text()
    for variant in (text, _uncommented(text)):
        assert settings_problems(parse_spark_properties(variant), CLUSTER, 3) == []


def test_a_path_with_blanks_stays_one_java_option():
    options = spark_log_options(Path("/a b/spark.log"))
    assert options.endswith('"-Dsparklog.spark.log=/a b/spark.log"')
