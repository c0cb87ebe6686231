"""The listeners of a broker: the addresses it listens on and advertises, and the listener of other brokers.

Names and rules are Kafka's (KIP-103, KIP-291). A listener is written ``NAME://HOST:PORT``. A client gets the
addresses of the listener by which it connected, because it can reach these.

    listeners                        the addresses to listen on. An empty host means the broker's own; port 0
                                     is assigned at the broker's start (``--port``), else any free port
    advertised.listeners             the addresses for clients and other brokers; listeners may be left out.
                                     An empty host means the broker's own, port 0 the port listened on
    listener.security.protocol.map   the security protocol of each name: PLAINTEXT, SSL, which is TLS, or
                                     SASL_PLAINTEXT and SASL_SSL, where clients log in
    inter.broker.listener.name       the listener of the brokers and of the controller

Without ``listeners`` a broker has the one listener ``PLAINTEXT``.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Final

from sparklog.model.cluster_facts import DEFAULT_LISTENER, Endpoint, SecurityProtocol
from sparklog.model.errors import ConfigError

LISTENERS: Final = "listeners"
ADVERTISED: Final = "advertised.listeners"
PROTOCOL_MAP: Final = "listener.security.protocol.map"
INTER_BROKER_NAME: Final = "inter.broker.listener.name"
INTER_BROKER_PROTOCOL: Final = "security.inter.broker.protocol"

LISTENER_SETTINGS: Final = (LISTENERS, ADVERTISED, PROTOCOL_MAP, INTER_BROKER_NAME, INTER_BROKER_PROTOCOL)

DEFAULT_PROTOCOL_MAP: Final = ",".join(f"{protocol.name}:{protocol.name}" for protocol in SecurityProtocol)

PORT_MAX: Final = 65_535

_LISTENER: Final = re.compile(r"([\w.-]+)://(?:\[([0-9a-fA-F:.%]+)\]|([\w.%-]*)):(\d{1,5})")


@dataclass(frozen=True, slots=True)
class Listeners:
    """Listeners by name, in the order of the settings. The module's text explains empty hosts and port 0."""

    bound: Mapping[str, Endpoint]
    advertised: Mapping[str, Endpoint]
    inter_broker: str

    def with_tls(self) -> tuple[str, ...]:
        """The listeners that speak TLS."""
        return tuple(name for name, one in self.bound.items() if one.security_protocol.has_tls)

    def with_login(self) -> tuple[str, ...]:
        """The listeners at which clients log in."""
        return tuple(name for name, one in self.bound.items() if one.security_protocol.has_login)

    @property
    def first(self) -> str:
        """The first advertised listener, whose address ``sparklog start`` shows."""
        return next(iter(self.advertised))

    def unassigned(self) -> tuple[str, ...]:
        """The listeners whose port is assigned at the broker's start."""
        return tuple(name for name, endpoint in self.bound.items() if not endpoint.port)

    def to_bind(self, host: str, ports: Mapping[str, int]) -> dict[str, Endpoint]:
        """The listening addresses of a broker at ``host`` with the assigned ``ports``; 0: any free port."""
        return {
            name: replace(one, host=one.host or host, port=one.port or ports.get(name, 0))
            for name, one in self.bound.items()
        }

    def to_advertise(self, host: str, ports: Mapping[str, int]) -> dict[str, Endpoint]:
        """The addresses that a broker at ``host`` advertises when it listens on ``ports``."""
        return {
            name: replace(one, host=one.host or host, port=one.port or ports[name])
            for name, one in self.advertised.items()
        }


def read_listeners(given: Mapping[str, str]) -> Listeners:
    """The listeners of the settings ``given``; ConfigError with the wrong value and a remedy."""
    protocols = _protocols(given.get(PROTOCOL_MAP, DEFAULT_PROTOCOL_MAP))
    listeners = given.get(LISTENERS, "") or f"{DEFAULT_LISTENER}://:0"
    bound = _parse(LISTENERS, listeners, protocols)
    _check_ports(listeners, bound)
    advertised = _advertised(given.get(ADVERTISED, ""), listeners, bound, protocols)
    inter_broker = _inter_broker(given)
    if inter_broker not in advertised:
        raise ConfigError(
            f"{INTER_BROKER_NAME}={inter_broker}: brokers talk to each other through it, but advertised are "
            f"{', '.join(advertised)}; name one of these, or add {inter_broker} to {LISTENERS}"
            + (f" and {ADVERTISED}" if given.get(ADVERTISED) else "")
        )
    return Listeners(bound, advertised, inter_broker)


def _protocols(text: str) -> dict[str, SecurityProtocol]:
    protocols: dict[str, SecurityProtocol] = {}
    for item in _items(text):
        name, colon, protocol = (part.strip() for part in item.partition(":"))
        if not (name and colon):
            raise ConfigError(
                f"{PROTOCOL_MAP}={text!r}: {item!r} is not NAME:PROTOCOL, as in EXTERNAL:PLAINTEXT"
            )
        if name.upper() in protocols:
            raise ConfigError(f"{PROTOCOL_MAP}={text!r}: {name} is named twice; leave one entry")
        protocols[name.upper()] = _protocol(PROTOCOL_MAP, text, protocol)
    return protocols


def _protocol(setting: str, text: str, name: str) -> SecurityProtocol:
    if name.upper() not in SecurityProtocol.__members__:
        known = ", ".join(SecurityProtocol.__members__)
        raise ConfigError(f"{setting}={text!r}: {name!r} is no security protocol; there are {known}")
    return SecurityProtocol[name.upper()]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _parse(setting: str, text: str, protocols: Mapping[str, SecurityProtocol]) -> dict[str, Endpoint]:
    found: dict[str, Endpoint] = {}
    for item in _items(text):
        match = _LISTENER.fullmatch(item)
        if match is None:
            raise ConfigError(
                f"{setting}={text!r}: {item!r} is not NAME://HOST:PORT, as in PLAINTEXT://:9092"
            )
        name, host, port = match[1].upper(), match[2] or match[3], int(match[4])
        if port > PORT_MAX:
            raise ConfigError(f"{setting}={text!r}: port {port} does not exist; the last one is {PORT_MAX}")
        if name in found:
            raise ConfigError(f"{setting}={text!r}: two listeners are called {name}; rename one of them")
        found[name] = Endpoint(host, port, _checked_protocol(setting, text, name, protocols))
    return found


def _checked_protocol(
    setting: str, text: str, name: str, protocols: Mapping[str, SecurityProtocol]
) -> SecurityProtocol:
    protocol = protocols.get(name)
    if protocol is None:
        named_after = [one for one in SecurityProtocol if one.name == name]
        entries = " or ".join(f"{name}:{one.name}" for one in named_after or SecurityProtocol)
        raise ConfigError(
            f"{setting}={text!r}: listener {name} has no security protocol; add {entries} to {PROTOCOL_MAP}"
        )
    return protocol


def _check_ports(text: str, bound: Mapping[str, Endpoint]) -> None:
    """Two listeners may share a port only if one has an IPv4 and the other an IPv6 address (KIP-797)."""
    used = Counter((":" in one.host, one.port) for one in bound.values() if one.port)
    for (_, port), count in used.items():
        if count > 1:
            raise ConfigError(
                f"{LISTENERS}={text!r}: {count} listeners share port {port}; give each its own, or 0"
            )


def _advertised(
    text: str, listeners: str, bound: Mapping[str, Endpoint], protocols: Mapping[str, SecurityProtocol]
) -> dict[str, Endpoint]:
    advertised = _parse(ADVERTISED, text, protocols) if text else dict(bound)
    for name, endpoint in advertised.items():
        if name not in bound:
            raise ConfigError(
                f"{ADVERTISED}={text!r}: {name} is not among the {LISTENERS}, which are {', '.join(bound)}; "
                "add it there, or leave it out here"
            )
        if _is_wildcard(endpoint.host):
            where = f"{ADVERTISED}={text!r}" if text else f"{LISTENERS}={listeners!r}"
            raise ConfigError(
                f"{where}: {name} would be advertised at {endpoint.host}, where no other machine reaches it; "
                f"set {ADVERTISED}={name}://HOST:{endpoint.port}, or leave out HOST for the broker's own"
            )
    return advertised


def _is_wildcard(host: str) -> bool:
    """Whether ``host`` stands for all interfaces: 0.0.0.0, or :: however that is written."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False  # a name


def _inter_broker(given: Mapping[str, str]) -> str:
    name = given.get(INTER_BROKER_NAME, "").upper()
    protocol = given.get(INTER_BROKER_PROTOCOL, "")
    if name and protocol:
        raise ConfigError(
            f"{INTER_BROKER_NAME}={name} and {INTER_BROKER_PROTOCOL}={protocol} both choose the brokers' "
            f"listener; leave {INTER_BROKER_PROTOCOL} out"
        )
    if not protocol:
        return name or DEFAULT_LISTENER
    return _protocol(INTER_BROKER_PROTOCOL, protocol, protocol).name
