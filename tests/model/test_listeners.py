"""The settings of listeners: what they mean together, and what cannot work."""

import pytest

from sparklog.model.cluster_facts import Endpoint, SecurityProtocol
from sparklog.model.errors import ConfigError
from sparklog.model.listeners import Listeners
from sparklog.model.settings.config import BrokerConfig, check_broker_settings

TWO = {
    "listeners": "INTERNAL://:0,EXTERNAL://0.0.0.0:9094",
    "advertised.listeners": "EXTERNAL://brokers.example.org:19094,INTERNAL://:0",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
}


def listeners(**settings: str) -> Listeners:
    return BrokerConfig.parse({name.replace("_", "."): text for name, text in settings.items()}).listeners


def of(settings: dict[str, str]) -> Listeners:
    return BrokerConfig.parse(settings).listeners


def test_without_settings_a_broker_has_one_listener_whose_port_its_start_assigns() -> None:
    only = listeners()
    assert (only.first, only.inter_broker, only.unassigned()) == ("PLAINTEXT", "PLAINTEXT", ("PLAINTEXT",))
    assert only.to_bind("here", {"PLAINTEXT": 9092}) == {"PLAINTEXT": Endpoint("here", 9092)}
    assert only.to_advertise("here", {"PLAINTEXT": 9092}) == {"PLAINTEXT": Endpoint("here", 9092)}


def test_an_empty_host_is_the_brokers_own_and_port_0_the_one_that_it_listens_on() -> None:
    two = of(TWO)
    assert (two.first, two.inter_broker, two.unassigned()) == ("EXTERNAL", "INTERNAL", ("INTERNAL",))
    assert two.to_bind("10.0.0.7", {"INTERNAL": 9093}) == {
        "INTERNAL": Endpoint("10.0.0.7", 9093),
        "EXTERNAL": Endpoint("0.0.0.0", 9094),
    }
    assert two.to_advertise("10.0.0.7", {"INTERNAL": 9093, "EXTERNAL": 9094}) == {
        "EXTERNAL": Endpoint("brokers.example.org", 19094),
        "INTERNAL": Endpoint("10.0.0.7", 9093),
    }


def test_a_listener_that_is_not_advertised_is_listened_on_alone() -> None:
    settings = {"listeners": "PLAINTEXT://:9092,ADMIN://:9093", "advertised.listeners": "PLAINTEXT://:9092",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,ADMIN:PLAINTEXT"}  # fmt: skip
    assert list(of(settings).bound) == ["PLAINTEXT", "ADMIN"]
    assert list(of(settings).advertised) == ["PLAINTEXT"]


def test_names_are_upper_case_and_addresses_may_be_ipv6() -> None:
    ((name, endpoint),) = listeners(listeners="plaintext://[::1]:9092").bound.items()
    assert (name, str(endpoint)) == ("PLAINTEXT", "[::1]:9092")
    assert endpoint.security_protocol is SecurityProtocol.PLAINTEXT


def test_listeners_that_speak_tls_are_known_by_their_protocol() -> None:
    settings = {"listeners": "PLAINTEXT://:1,OUTSIDE://:2,SSL://:3", "security.inter.broker.protocol": "SSL",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL,SSL:SSL",
                "ssl.keystore.location": "/k"}  # fmt: skip
    assert (of(settings).with_tls(), of(settings).inter_broker) == (("OUTSIDE", "SSL"), "SSL")
    assert of(settings).bound["OUTSIDE"].security_protocol is SecurityProtocol.SSL
    assert list(listeners().with_tls()) == []


def test_two_listeners_share_a_port_only_as_ipv4_and_ipv6() -> None:
    both = {"listeners": "PLAINTEXT://127.0.0.1:9092,SIX://[::1]:9092",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SIX:PLAINTEXT"}  # fmt: skip
    assert len(of(both).bound) == 2
    with pytest.raises(ConfigError, match="2 listeners share port 9092; give each its own, or 0"):
        of({**both, "listeners": "PLAINTEXT://127.0.0.1:9092,SIX://10.0.0.1:9092"})


def test_the_brokers_listener_is_chosen_by_its_name_or_by_its_protocol() -> None:
    assert listeners(security_inter_broker_protocol="PLAINTEXT").inter_broker == "PLAINTEXT"
    with pytest.raises(ConfigError, match="both choose the brokers' listener; leave security"):
        of({**TWO, "security.inter.broker.protocol": "PLAINTEXT"})


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"listeners": "PLAINTEXT//h:1"}, "'PLAINTEXT//h:1' is not NAME://HOST:PORT, as in PLAINTEXT://:9092"),
        ({"listeners": "PLAINTEXT://h:65536"}, "port 65536 does not exist; the last one is 65535"),
        ({"listeners": "PLAINTEXT://:1,plaintext://:2"}, "two listeners are called PLAINTEXT; rename one"),
        ({"listeners": "PLAINTEXT://:1,INSIDE://:2"}, "add INSIDE:PLAINTEXT or INSIDE:SSL or INSIDE:SASL_"),
        ({"listeners": "PLAINTEXT://:1,SASL_SSL://:2"}, "listener SASL_SSL speaks TLS and has no"),
        ({"listeners": "SSL://:2"}, "inter.broker.listener.name=PLAINTEXT: brokers talk to each"),
        ({"listeners": "PLAINTEXT://:1,SSL://:2"}, "listener SSL speaks TLS and has no certificate"),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "set advertised.listeners=PLAINTEXT://HOST:9092"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "would be advertised at 0.0.0.0"),
        ({"listeners": "PLAINTEXT://[0:0:0:0:0:0:0:0]:9092"}, "would be advertised at 0:0:0:0:0:0:0:0"),
        ({**TWO, "inter.broker.listener.name": "THIRD"}, "name one of these, or add THIRD to listeners"),
        ({"inter.broker.listener.name": "INTERNAL"}, "advertised are PLAINTEXT; name one of these, or"),
        ({**TWO, "advertised.listeners": "PUBLIC://h:1"}, "listener PUBLIC has no security protocol"),
        (
            {**TWO, "advertised.listeners": "PUBLIC://h:1",
             "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,PUBLIC:PLAINTEXT"},
            "PUBLIC is not among the listeners, which are INTERNAL, EXTERNAL; add it there",
        ),
        ({"listener.security.protocol.map": "PLAINTEXT"}, "is not NAME:PROTOCOL"),
        ({"listener.security.protocol.map": "A:PLAINTEXT,A:SSL"}, "A is named twice"),
        ({"listener.security.protocol.map": "A:TLS"}, "'TLS' is no security protocol; there are PLAIN"),
        ({"listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT"}, "clients log in at listener PLAIN"),
        ({"security.inter.broker.protocol": "SASL_SSL"}, "inter.broker.listener.name=SASL_SSL: brokers talk"),
        ({"security.inter.broker.protocol": "SSL"}, "inter.broker.listener.name=SSL: brokers talk"),
    ],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_broker_settings(settings)
    assert problem in str(refused.value)


def test_protocols_that_no_listener_uses_are_no_matter() -> None:
    settings = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL"}
    assert check_broker_settings(settings).warnings == ()
