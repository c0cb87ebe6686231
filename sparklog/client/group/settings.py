"""The settings of a group's member, with the defaults of Kafka's Java consumer."""

from dataclasses import dataclass, field
from typing import Final

from sparklog.client.group.assignors.assignor import Assignor, RebalanceProtocol
from sparklog.client.group.assignors.range import RangeAssignor
from sparklog.client.group.assignors.round_robin import RoundRobinAssignor
from sparklog.client.group.assignors.sticky import CooperativeStickyAssignor
from sparklog.model.errors import ConfigError

ASSIGNORS: Final[dict[str, Assignor]] = {
    assignor.name: assignor
    for assignor in (RangeAssignor(), RoundRobinAssignor(), CooperativeStickyAssignor())
}
"""Every assignor, by Kafka's name for it."""

DEFAULT_ASSIGNORS: Final = ("range", "cooperative-sticky")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """How one member takes part in its group; ConfigError for values that cannot work together."""

    group_id: str
    topics: frozenset[str]
    group_instance_id: str | None = None
    """Makes the member a static one (KIP-345): it may return within the session time-out, and the group
    does not rebalance. Each instance id belongs to one member."""
    assignors: tuple[str, ...] = DEFAULT_ASSIGNORS
    """The rules that this member knows, the preferred one first. All members need one in common."""
    session_timeout_ms: int = 45_000
    """After so long without a heartbeat the coordinator removes the member."""
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    """A member whose application polls less often leaves the group; also the rebalance time-out."""
    known: tuple[Assignor, ...] = field(init=False)
    """The assignors by name."""

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ConfigError("group.id is empty; give the group a name")
        if not self.topics:
            raise ConfigError(f"group {self.group_id!r}: no topic to subscribe to; give at least one")
        unknown = [name for name in self.assignors if name not in ASSIGNORS]
        if unknown or not self.assignors:
            raise ConfigError(
                f"partition.assignment.strategy={','.join(self.assignors)!r}: "
                f"there are {', '.join(ASSIGNORS)}"
            )
        if not 0 < self.heartbeat_interval_ms < self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat.interval.ms={self.heartbeat_interval_ms}: must be more than 0 and less than "
                f"session.timeout.ms={self.session_timeout_ms}"
            )
        object.__setattr__(self, "known", tuple(ASSIGNORS[name] for name in self.assignors))

    @property
    def protocol(self) -> RebalanceProtocol:
        """COOPERATIVE if every assignor supports it: the rule is not known until the group has agreed."""
        is_cooperative = all(RebalanceProtocol.COOPERATIVE in assignor.protocols for assignor in self.known)
        return RebalanceProtocol.COOPERATIVE if is_cooperative else RebalanceProtocol.EAGER
