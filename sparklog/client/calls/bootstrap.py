"""``bootstrap.servers``: where a client finds its first broker."""

from typing import NamedTuple

from sparklog.model.cluster_facts import host_port
from sparklog.model.errors import ConfigError


class Endpoint(NamedTuple):
    """A place to connect to."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_port(self.host, self.port)


def parse_bootstrap_servers(text: str) -> tuple[Endpoint, ...]:
    """``host:port,host:port``; raises ConfigError with the value and its mistake."""
    endpoints = tuple(_parse_endpoint(item.strip(), text) for item in text.split(",") if item.strip())
    if not endpoints:
        raise ConfigError(f"bootstrap.servers={text!r}: give at least one broker as host:port")
    return endpoints


def _parse_endpoint(item: str, text: str) -> Endpoint:
    item = item.rpartition("://")[2]  # PLAINTEXT://host:port, as Kafka's listeners are written
    host, colon, port = item.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]") and len(host) > 2
    if ":" in host and not is_bracketed:
        raise ConfigError(
            f"bootstrap.servers={text!r}: {item!r} is not host:port; an IPv6 address stands in brackets, "
            "as in [::1]:9092"
        )
    if not colon or not host or ("[" in host and not is_bracketed):
        raise ConfigError(f"bootstrap.servers={text!r}: {item!r} is not host:port, as in 127.0.0.1:9092")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ConfigError(f"bootstrap.servers={text!r}: {port!r} is not a port between 1 and 65535")
    return Endpoint(host.removeprefix("[").removesuffix("]"), int(port))
