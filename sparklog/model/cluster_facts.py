"""Facts about brokers, topics and partitions that the members of a cluster exchange."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from sparklog.model.ids import (
    NO_BROKER_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
)

DEFAULT_LISTENER: Final = "PLAINTEXT"
"""The listener of a broker whose settings name none, and of a registration that lists no endpoints."""


class SecurityProtocol(IntEnum):
    """The protection of a listener's connections; the numbers are those of UpdateMetadata."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_login(self) -> bool:
        """Whether clients log in."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address of a broker, and its security protocol."""

    host: str
    port: int
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT

    def __str__(self) -> str:
        return host_port(self.host, self.port)


def host_port(host: str, port: int) -> str:
    """``host:port``, with brackets around the host if it is an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@dataclass(frozen=True, slots=True)
class Node:
    """A live broker as the clients of one listener see it."""

    id: BrokerId
    host: str
    port: int
    epoch: BrokerEpoch = NO_BROKER_EPOCH
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Broker:
    """A live broker, with its advertised addresses by listener name, in the order of its settings."""

    id: BrokerId
    endpoints: Mapping[str, Endpoint] = field(hash=False)
    epoch: BrokerEpoch = NO_BROKER_EPOCH
    rack: str | None = None

    def node(self, listener: str) -> Node | None:
        """The broker as clients of ``listener`` see it; None if it has no such listener."""
        endpoint = self.endpoints.get(listener)
        if endpoint is None:
            return None
        return Node(self.id, endpoint.host, endpoint.port, self.epoch, self.rack)


def plaintext(host: str, port: int) -> dict[str, Endpoint]:
    """The endpoints of a broker with only the default listener."""
    return {DEFAULT_LISTENER: Endpoint(host, port)}


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition as ZooKeeper records it.

    ``partition_epoch`` is the version of its state znode: every change is a compare-and-set on it.
    ``isr_incarnations`` holds, for each ISR member, the version of its ``/brokers/incarnations`` node when
    the member was last confirmed, so that a stale view never counts a replica that has restarted since.
    ``eligible`` (KIP-966) are replicas outside the ISR that are known to hold everything committed.
    """

    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    replicas: tuple[BrokerId, ...]
    partition_epoch: int = 0
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    eligible: tuple[BrokerId, ...] = ()
    isr_incarnations: Mapping[BrokerId, int] = field(default_factory=dict)
    min_insync_replicas: int = 1
    """The min ISR of this leader epoch: the topic's setting when the epoch began."""
    lost_in_epoch: LeaderEpoch = LeaderEpoch(-1)
    """The last leader epoch whose leader may have lacked acknowledged records; -1 if there was none."""
    store_given_up_in_epoch: LeaderEpoch = LeaderEpoch(-1)
    """The last leader epoch that an operator let begin without the remote store; -1 if there was none."""

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER
