"""The hosts file: racks and addresses of brokers by their host."""

import socket

import pytest

from sparklog.model.errors import ConfigError
from sparklog_runtime.broker_process.broker_plan import BrokerPlan
from sparklog_runtime.settings.hosts_file import (
    HostProperties,
    own_names,
    parse_hosts,
    properties_of,
    read_hosts,
)
from sparklog_runtime.start.cluster_options import ClusterOptions

TEXT = """
# two racks
Node-1     rack=a   address=node-1.example.com   # outside
10.0.0.5   rack=b
"""


def test_a_host_is_found_by_any_of_its_names_whatever_their_case():
    hosts = parse_hosts(TEXT)
    assert properties_of(hosts, ["node-1.cluster", "NODE-1"]) == HostProperties("a", "node-1.example.com")
    assert properties_of(hosts, ["node-2", "10.0.0.5"]) == HostProperties("b")


def test_a_host_that_is_not_named_is_refused_unless_a_star_stands_for_all():
    with pytest.raises(
        ConfigError, match=r"names node-1, 10\.0\.0\.5, but not this host, node-9 or 10\.0\.0\.9"
    ):
        properties_of(parse_hosts(TEXT), ["node-9", "10.0.0.9"])
    assert properties_of(parse_hosts(TEXT + "* rack=c"), ["node-9"]) == HostProperties("c")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("node-1", "is alone on its line"),
        ("node-1 rack", "'rack' of node-1 is neither rack=NAME nor address=HOST"),
        ("node-1 rack=", "'rack=' of node-1 is neither"),
        ("node-1 zone=a", "'zone=a' of node-1 is neither"),
        ("node-1 rack=a rack=b", "two of rack, a and b"),
        ("* address=h", "would be that of several hosts"),
    ],
)
def test_a_line_that_says_nothing_usable_is_named_by_its_number(line, words):
    with pytest.raises(ConfigError, match=f"line 2: .*{words.replace('*', '[*]')}"):
        parse_hosts(f"# hosts\n{line}\n")


def test_a_host_has_one_line():
    with pytest.raises(ConfigError, match="line 2: NODE is named twice"):
        parse_hosts("node rack=a\nNODE rack=b\n")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"hosts\.file=.*/hosts cannot be read: No such file"):
        read_hosts(tmp_path / "hosts")
    (tmp_path / "hosts").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="no text in UTF-8"):
        read_hosts(tmp_path / "hosts")


def _plan(text: str) -> BrokerPlan:
    return BrokerPlan(
        slot=0,
        supervisor_host="127.0.0.1",
        supervisor_port=1,
        token="",
        zookeeper="",
        host=None,
        log_dir_patterns=("/d/broker-{id}",),
        log_file_pattern="",
        rack="application",
        hosts=parse_hosts(text),
    )


def test_a_broker_takes_rack_and_address_of_its_host_and_else_those_of_the_application():
    special = _plan("10.0.0.9 rack=a address=outside").identity(1, {"PLAINTEXT": 9092}, "10.0.0.9")
    assert (special.rack, special.advertised_host, special.host) == ("a", "outside", "10.0.0.9")
    plain = _plan("").identity(1, {"PLAINTEXT": 9092}, "10.0.0.9")
    assert (plain.rack, plain.advertised_host, plain.host) == ("application", None, "10.0.0.9")


def test_a_start_refuses_a_hosts_file_that_it_cannot_use(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("node-1\n")
    options = ClusterOptions(root=tmp_path, settings={"hosts.file": str(path)})
    with pytest.raises(ConfigError, match=f"hosts.file={path}: line 1: node-1 is alone on its line"):
        options.check()


def test_a_machine_knows_itself_by_name_and_by_address():
    assert {socket.gethostname(), "10.0.0.9"} <= set(own_names("10.0.0.9"))
