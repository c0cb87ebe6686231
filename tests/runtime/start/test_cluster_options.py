"""What follows from the options of a cluster: the address that others are told, Spark's settings."""

import pytest

from sparklog_runtime.start import cluster_options
from sparklog_runtime.start.cluster_folders import Layout
from sparklog_runtime.start.cluster_options import ClusterOptions, default_conf, own_address


@pytest.fixture
def routes(monkeypatch):
    """Our address towards each host; others cannot be reached."""
    found: dict[str, str] = {}
    monkeypatch.setattr(cluster_options, "_address_towards", found.get)
    return found


@pytest.mark.bug("B59", "words", "A standby controller advertises 127.0.0.1 to other hosts.")
def test_a_controller_tells_the_address_that_faces_zookeeper(routes):
    routes.update({"zk-1": "10.0.0.5", "192.0.2.1": "203.0.113.9"})
    assert own_address("zk-1:2181/chroot") == "10.0.0.5"


@pytest.mark.bug("B59")
def test_no_way_out_of_the_clusters_network_is_needed(routes):
    routes.update({"zk-2": "10.0.0.5"})
    assert own_address("zk-1:2181,zk-2:2181") == "10.0.0.5"


@pytest.mark.parametrize("zookeeper", [None, "localhost:2181"])
def test_a_zookeeper_of_this_machine_tells_nothing(routes, zookeeper):
    routes.update({"localhost": "127.0.0.1", "192.0.2.1": "203.0.113.9"})
    assert own_address(zookeeper) == "203.0.113.9"


def test_alone_in_the_world_it_is_the_loopback(routes):
    assert own_address("zk-1:2181") == "127.0.0.1"


def _spark_conf(root, master):
    return default_conf(ClusterOptions(root=root, brokers=3, master=master), Layout.at(root))


def test_on_a_cluster_there_is_an_executor_for_each_broker_and_nothing_else(tmp_path):
    conf = _spark_conf(tmp_path, "spark://127.0.0.1:7077")
    assert (conf["spark.executor.cores"], conf["spark.cores.max"]) == ("1", "3")


@pytest.mark.parametrize("master", [None, "spark://127.0.0.1:7077"])
def test_a_broker_is_forked_by_a_process_that_has_imported_what_it_needs(tmp_path, master):
    assert (
        _spark_conf(tmp_path, master)["spark.python.daemon.module"]
        == "sparklog_runtime.broker_process.python_daemon"
    )


@pytest.mark.bug(
    "B55", "away", "On a Spark cluster a killed broker is away for seconds longer than in one JVM."
)
def test_spark_leaves_a_dead_broker_to_the_supervisor(tmp_path):
    """A second attempt of its own is a Python that starts for nothing, before the supervisor hears of it."""
    assert _spark_conf(tmp_path, "spark://127.0.0.1:7077")["spark.task.maxFailures"] == "1"
    assert "spark.task.maxFailures" not in _spark_conf(tmp_path, None)  # local masters try once anyway
