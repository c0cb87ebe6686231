"""Spark settings that would kill brokers are refused, each with what to change."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog_runtime.settings.settings_check import (
    check_settings,
    is_local,
    master_problem,
    quiet_warnings,
    settings_problems,
    settings_warnings,
    zookeeper_problem,
)

CLUSTER = "spark://host:7077"
CORES = {"spark.executor.cores": "3"}


@pytest.mark.parametrize(
    "name",
    ["spark.dynamicAllocation.enabled", "spark.speculation", "spark.python.worker.killOnIdleTimeout"],
)
def test_a_feature_that_kills_brokers_is_refused_with_the_remedy(name):
    problems = settings_problems({name: "true", **CORES}, CLUSTER, 3)
    assert len(problems) == 1
    assert problems[0].endswith(f"set {name}=false")
    assert settings_problems({name: "false", **CORES}, CLUSTER, 3) == []


@pytest.mark.parametrize(
    ("master", "fits"), [("local[4]", True), ("local[3]", False), ("local", False), ("local[5,2]", True)]
)
def test_a_local_master_needs_a_slot_more_than_brokers(master, fits):
    problems = settings_problems({}, master, 3)
    assert (problems == []) is fits
    if not fits:
        assert "set --master local[4] or more" in problems[0]


def test_tasks_of_several_cpus_take_as_many_slots():
    assert "runs 2 tasks" in settings_problems({"spark.task.cpus": "2"}, "local[5]", 3)[0]


def test_a_local_cluster_needs_an_executor_per_broker():
    assert settings_problems({}, "local-cluster[3,2,512]", 3) == []
    assert "local-cluster[3,2,...]" in settings_problems({}, "local-cluster[2,2,512]", 3)[0]


def test_a_cluster_master_needs_to_know_the_cores_of_an_executor():
    assert "set spark.executor.cores=3" in settings_problems({}, CLUSTER, 3)[0]
    assert settings_problems(CORES, CLUSTER, 3) == []


def test_an_address_space_too_small_for_a_broker_is_refused():
    problems = settings_problems({"spark.executor.pyspark.memory": "3g", **CORES}, CLUSTER, 3)
    assert "leaves a broker 1024 MiB" in problems[0]
    assert "set at least 6144m" in problems[0]
    assert settings_problems({"spark.executor.pyspark.memory": "6g", **CORES}, CLUSTER, 3) == []


def test_all_problems_come_in_one_message():
    conf = {"spark.speculation": "true", "spark.dynamicAllocation.enabled": "true"}
    with pytest.raises(ConfigError, match=r"dynamicAllocation.*speculation.*executor\.cores"):
        check_settings(conf, CLUSTER, 3)


def test_what_works_at_a_price_is_warned_of():
    assert len(settings_warnings({"spark.excludeOnFailure.enabled": "true"})) == 1
    assert settings_warnings({"spark.decommission.enabled": "true"}) == []
    assert settings_warnings({}) == []


def test_a_second_attempt_of_sparks_own_is_worth_a_quiet_warning():
    (warning,) = quiet_warnings({}, CLUSTER)
    assert warning.startswith("spark.task.maxFailures=4:")
    assert quiet_warnings({"spark.task.maxFailures": "1"}, CLUSTER) == []
    assert quiet_warnings({}, "local[4]") == []


def test_local_masters_are_told_from_clusters():
    assert is_local("local[*]")
    assert not is_local("local-cluster[1,1,512]")
    assert not is_local(CLUSTER)


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[*]",
        "local[4,2]",
        "local-cluster[3,2,512]",
        CLUSTER,
        "spark://a:1,b:2",
        "yarn",
        "k8s://h",
    ],
)
def test_the_masters_that_spark_knows_are_accepted(master):
    assert master_problem(master) is None


@pytest.mark.parametrize(
    "master", ["", "locl[3]", "local[x]", "spark://host", "host:7077", "local-cluster[3]"]
)
def test_a_master_that_spark_would_not_understand_is_named_with_those_that_it_does(master):
    problem = master_problem(master)
    assert problem.startswith(f"{master!r} is no master URL of Spark; give local[N]")


def test_a_zookeeper_is_an_address_with_a_port_and_perhaps_a_chroot():
    assert zookeeper_problem("a:2181,b:2181/logs/one") is None
    assert zookeeper_problem("a:2181//x") is not None
    assert zookeeper_problem("a:99999") is not None
    assert zookeeper_problem("") is not None
