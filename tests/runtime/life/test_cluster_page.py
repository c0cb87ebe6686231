"""Which drivers serve a page, and to whom."""

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.web_rows import without_web
from sparklog_runtime.life.cluster_page import ClusterPage
from tests.certificates import Authority


def page_of(tmp_path: Path, settings: Mapping[str, str], *, is_chosen: bool = False) -> ClusterPage:
    config = BrokerConfig.parse(settings)
    return ClusterPage(config, tmp_path, "run", tmp_path / "log", is_chosen=is_chosen)


def opened(page: ClusterPage) -> tuple[bool, list[str]]:
    """Whether it has a page, and what it says."""
    said: list[str] = []
    page.open(said.append)
    has_page = page.port is not None
    page.stop()
    assert page.url is None
    return has_page, said


@pytest.mark.parametrize(
    ("settings", "is_chosen", "has_page"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"web.port": "0"}, False, True),
        ({"web.port": "-1"}, True, False),
    ],
)
def test_a_start_has_a_page_and_other_drivers_have_one_where_a_setting_says_so(
    tmp_path: Path, settings: dict[str, str], is_chosen: bool, has_page: bool
) -> None:
    assert opened(page_of(tmp_path, settings, is_chosen=is_chosen)) == (has_page, [])


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "logs.example.org"])
def test_a_host_that_others_reach_is_refused_unless_the_page_is_open_to_all(
    tmp_path: Path, host: str
) -> None:
    with pytest.raises(ConfigError, match=f"web.host={host}: everybody who reaches it would see the page"):
        page_of(tmp_path, {"web.port": "0", "web.host": host})
    page_of(tmp_path, {"web.port": "0", "web.host": host, "web.open": "true"})
    page_of(tmp_path, {"web.host": host})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_the_loopback_needs_no_leave(tmp_path: Path, host: str) -> None:
    page_of(tmp_path, {"web.port": "0", "web.host": host})


def test_a_port_that_is_taken_costs_the_page_and_not_the_cluster(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        has_page, said = opened(page_of(tmp_path, {"web.port": str(port)}))
    assert not has_page
    assert f"no page: web.port={port} cannot be opened at 127.0.0.1:{port}: Address already in use" in said[0]


def test_where_clients_are_known_by_certificates_a_driver_names_the_command(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = authority.settings(authority.issue("broker"), client_auth="required")
    settings = {"web.port": "0", "listeners": "SSL://:0", "security.inter.broker.protocol": "SSL", **tls}
    has_page, said = opened(page_of(tmp_path, settings))
    assert not has_page
    assert "sparklog page --bootstrap-server HOST:PORT --command-config FILE" in said[0]


def test_where_clients_log_in_so_do_users_of_the_page_and_others_need_tls(tmp_path: Path) -> None:
    settings = {"web.port": "0", "listeners": "SASL_PLAINTEXT://:0", **LOGIN}
    assert opened(page_of(tmp_path, settings)) == (True, [])
    reachable = {**settings, "web.host": "0.0.0.0"}
    with pytest.raises(ConfigError, match="passwords would cross the network in the clear"):
        page_of(tmp_path, reachable)
    key = Authority(tmp_path).issue("page")
    page = page_of(tmp_path, {**reachable, "web.ssl.keystore.location": str(key)})
    page.open(lambda _: None)
    assert str(page.url).startswith("https://0.0.0.0:")
    page.stop()


LOGIN = {
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram."
    'ScramLoginModule required username="b" password="${env:PAGE_TESTS_SECRET}";',
}


def test_a_listener_that_is_none_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"web\.listener=OTHER is no listener of clients"):
        page_of(tmp_path, {"web.port": "0", "web.listener": "OTHER"}).open(lambda _: None)


def test_the_page_is_no_business_of_executors() -> None:
    assert without_web({"web.port": "0", "web.ssl.keystore.key": "secret", "log.dirs": "/d"}) == {
        "log.dirs": "/d"
    }
