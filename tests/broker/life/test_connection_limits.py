"""The limits of connections as settings name them."""

import socket
from typing import Any

import pytest

from sparklog.broker.current_settings import CurrentSettings
from sparklog.broker.life.connection_limits import ConfiguredLimits, limits_by_address
from sparklog.model.settings.config import BrokerConfig, DynamicConfigs
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
