"""``sparklog quotas`` against a broker: what is set, listed and removed, and what is refused."""

import json

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.cli.main import main
from sparklog.testing import InProcessCluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with InProcessCluster(tmp_path_factory.mktemp("quotas"), brokers=1) as running:
        yield running


@pytest.fixture
def run(cluster, capsys):
    """Status and output of ``sparklog quotas``, errors as well."""

    def run_it(*words):
        status = main(["quotas", *words, "--bootstrap-server", cluster.bootstrap_servers])
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return run_it


def listed(run):
    status, text = run("list", "--json")
    assert status == DONE
    return json.loads(text)["quotas"]


def test_quotas_are_set_listed_and_removed(run):
    assert run("set", "--user", "alice", "producer_byte_rate=1e6", "request_percentage=12.5") == (
        DONE,
        "user 'alice': producer_byte_rate=1e+06\nuser 'alice': request_percentage=12.5\n",
    )
    assert run("set", "--user", "alice", "--client-id", "", "consumer_byte_rate=5")[0] == DONE
    assert run("set", "--ip", "", "connection_creation_rate=7")[0] == DONE
    assert listed(run) == [
        {"entity": {"ip": None}, "values": {"connection_creation_rate": 7.0}},
        {
            "entity": {"user": "alice"},
            "values": {"producer_byte_rate": 1_000_000.0, "request_percentage": 12.5},
        },
        {"entity": {"user": "alice", "client-id": None}, "values": {"consumer_byte_rate": 5.0}},
    ]
    status, table = run("list")
    assert status == DONE
    assert "user 'alice', the default client-id  consumer_byte_rate" in table
    assert run("remove", "--user", "alice", "producer_byte_rate", "request_percentage")[0] == DONE
    assert run("remove", "--user", "alice", "--client-id", "", "consumer_byte_rate")[0] == DONE
    assert run("remove", "--ip", "", "connection_creation_rate") == (
        DONE,
        "the default ip: connection_creation_rate removed\n",
    )
    assert listed(run) == []


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("set", "producer_byte_rate=1"), WRONG_USAGE, "name one entity: --user N, --client-id C"),
        (("set", "--ip", "10.0.0.1", "--user", "a", "x=1"), WRONG_USAGE, "name one entity"),
        (("set", "--user", "a", "producer_byte_rate=much"), WRONG_USAGE, "is a number of at least 0"),
        (("set", "--user", "a", "producer_byte_rate"), WRONG_USAGE, "producer_byte_rate"),
        (
            ("set", "--user", "a", "producer_byte_rat=1"),
            FAILED,
            "Invalid configuration key producer_byte_rat",
        ),
        (("set", "--user", "a", "producer_byte_rate=-1"), FAILED, "not a finite number of at least 0"),
        (("set", "--ip", "no.host", "connection_creation_rate=1"), FAILED, "no.host is not a valid IP"),
        (("remove", "--user", "bob", "producer_byte_rate"), FAILED, "has no quota producer_byte_rate"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(run, words, status, says):
    found, text = run(*words)
    assert (found, says in text) == (status, True), text
