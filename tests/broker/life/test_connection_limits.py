"""The limits of connections as settings name them."""

import socket
from typing import Any

import pytest

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.life.connection_limits import ConfiguredLimits, limits_by_address
from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig, DynamicConfigs
from sparklog.network.accepting.connection_count import UNLIMITED, ListenerLimits
from tests.of_this_thread import of_this_thread

OVERRIDES = "max.connections.per.ip.overrides"


class Works:
    """An executor whose work a test runs, or leaves undone."""

    def __init__(self):
        self.submitted = []

    def submit(self, work):
        self.submitted.append(work)


def change(settings, **changed):
    names = {"per_ip": "max.connections.per.ip", "overrides": OVERRIDES}
    settings.change(DynamicConfigs(own={names[name]: value for name, value in changed.items()}))


def test_limits_follow_the_settings_while_the_broker_runs():
    settings = CurrentSettings(BrokerConfig.parse({"max.connections": "9", OVERRIDES: "127.0.0.1:3, ::1:4"}))
    works = Works()
    limits = ConfiguredLimits(settings, works)
    assert (limits().total, limits().per_address) == (9, 2**31 - 1)
    assert limits().of_address == {"127.0.0.1": 3, "::1": 4}
    change(settings, per_ip="7", overrides="127.0.0.1:5")
    assert (limits().total, limits().per_address) == (9, 7)
    works.submitted.pop()()
    assert limits().of_address == {"127.0.0.1": 5}


def test_no_thread_that_accepts_connections_or_sets_a_limit_looks_a_name_up(monkeypatch: pytest.MonkeyPatch):
    settings = CurrentSettings(BrokerConfig.parse({OVERRIDES: "localhost:3"}))
    works = Works()
    limits = ConfiguredLimits(settings, works)  # the broker starts: its own thread may wait
    real = socket.getaddrinfo

    def refuse(*_: Any, **__: Any) -> Any:
        pytest.fail("a name is looked up here")

    monkeypatch.setattr(socket, "getaddrinfo", of_this_thread(real, refuse))
    change(settings, overrides="localhost:5")
    assert limits().of_address["127.0.0.1"] == 3  # until the lookup has ended
    monkeypatch.undo()
    works.submitted.pop()()
    assert limits().of_address["127.0.0.1"] == 5


def test_a_slow_lookup_does_not_undo_a_later_change():
    settings = CurrentSettings(BrokerConfig.parse({}))
    works = Works()
    limits = ConfiguredLimits(settings, works)
    change(settings, overrides="127.0.0.1:1")
    change(settings, overrides="127.0.0.1:2")
    change(settings, per_ip="7", overrides="127.0.0.1:2")  # which needs no other lookup
    slow, quick = works.submitted
    quick()
    slow()
    assert limits().of_address == {"127.0.0.1": 2}


def test_a_host_without_an_address_is_named_and_the_others_keep_their_limits(caplog):
    assert limits_by_address(("no.such.host.invalid:1", ".:2", "localhost:3"))["127.0.0.1"] == 3
    assert caplog.text.count("has no address") == 2


def test_listeners_have_limits_of_their_own_and_that_of_brokers_is_protected():
    given = {
        "listeners": "A://:0,B://:0",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        "inter.broker.listener.name": "B",
        "listener.name.a.max.connections": "5",
        "max.connection.creation.rate": "7",
    }
    settings = CurrentSettings(BrokerConfig.parse(given))
    limits = ConfiguredLimits(settings, Works())
    assert limits().of_listener == {"A": ListenerLimits(5, UNLIMITED)}
    assert (limits().rate, limits().protected) == (7, "B")
    settings.change(
        DynamicConfigs(
            own={"listener.name.b.max.connection.creation.rate": "3", "max.connection.creation.rate": "9"}
        )
    )
    assert limits().of_listener == {"A": ListenerLimits(5, UNLIMITED), "B": ListenerLimits(UNLIMITED, 3)}
    assert limits().rate == 9
    one = ConfiguredLimits(CurrentSettings(BrokerConfig.parse({})), Works())
    assert one().protected is None


@pytest.mark.parametrize(
    "given",
    [
        {"listener.name.outside.max.connections": "5"},
        {"listener.name.plaintext.max.connections": "0"},
        {"listener.name.plaintext.max.connection.creation.rate": "many"},
        {"max.connection.creation.rate": "-1"},
    ],
)
def test_what_is_no_limit_is_refused(given):
    with pytest.raises(ConfigError, match=next(iter(given))):
        BrokerConfig.parse(given)
