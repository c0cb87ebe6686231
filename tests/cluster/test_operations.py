"""Operations on brokers of a cluster, through the command line, as an operator has them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sparklog.cli.main import main
from sparklog.testing import InProcessCluster
from tests.waiting import until

TOPIC = "operated-topic"


@pytest.fixture(scope="module")
def cluster() -> Iterator[InProcessCluster]:
    with InProcessCluster(brokers=4) as cluster:
        cluster.create_topic(TOPIC, partitions=4, replication_factor=2)
        yield cluster


def brokers(cluster: InProcessCluster, *words: str) -> int:
    return main(["brokers", *words, "--bootstrap-server", cluster.bootstrap_servers])


def shown(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert brokers(cluster, *words, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    (entries,) = found.values()
    assert isinstance(entries, list)
    return entries


def test_the_list_has_every_field(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> None:
    first = shown(cluster, capsys, "list")[0]
    names = (
        "broker_id host rack application release state reason since_ms relaunches leaders replicas in_sync"
    )
    assert list(first) == [*names.split(), "wish"]
    assert (first["broker_id"], first["state"], first["wish"]) == (1, "serving", "serving")
    assert brokers(cluster, "list") == 0
    assert "serving" in capsys.readouterr().out


def test_a_drain_moves_replicas_of_real_logs(
    cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert brokers(cluster, "drain", "4", "--no-wait") == 0
    until(lambda: shown(cluster, capsys, "list")[3]["replicas"] == 0)
    listed = until(lambda: [one for one in shown(cluster, capsys, "list") if one["wish"] == "drained"])
    assert [one["broker_id"] for one in listed] == [4]
    assert listed[0]["state"] == "stopping", "nothing stops the brokers of this cluster but the test"
    (operation,) = shown(cluster, capsys, "operations")
    assert list(operation) == (
        "id kind brokers state done total waiting_for requested_by since_ms reason".split()
    )
    assert (operation["kind"], operation["state"], operation["brokers"]) == ("drain", "running", [4])
    assert operation["waiting_for"] == ["broker 4 runs, and no application says that it hosts it"]
    assert brokers(cluster, "cancel", str(operation["id"])) == 0
    assert {one["wish"] for one in shown(cluster, capsys, "list")} == {"serving"}


def test_refusals_name_the_remedy(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert brokers(cluster, "stop", "9") == 1
    assert "there is no broker 9: there are [1, 2, 3, 4]" in capsys.readouterr().err
    assert brokers(cluster, "cancel", "77") == 1
    assert "there is no operation 77" in capsys.readouterr().err
    assert brokers(cluster, "restart") == 2
    assert "give their ids, or --all" in capsys.readouterr().err
    assert brokers(cluster, "remove", "1") == 1
    assert "sparklog brokers drain 1" in capsys.readouterr().err
