"""An ISR counts only brokers that are registered and stay."""

from dataclasses import dataclass, field
from typing import Final

from simulation.invariants.invariant import Invariant
from simulation.truth import PartitionTruth
from sparklog.core.controller.state.znodes import broker_path
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId
from sparklog.testing.memory_zookeeper import ZooKeeperTree

NOTICED_MS: Final = 2_500
"""Within this time, longer than any session here, a controller has noticed that a broker is gone, or it is
none any more."""


@dataclass(slots=True)
class CountsWhoIsThere(Invariant):
    """Who joins an ISR is registered, as far as a controller can know: others would wait for one that is not.

    ``is_blind``: controllers may hear of registrations later than ``NOTICED_MS``.
    """

    brokers: tuple[BrokerId, ...] = ()
    is_blind: bool = False
    _gone_since: dict[BrokerId, int] = field(default_factory=dict)
    _now_ms: int = 0

    def look_at_zookeeper(self, tree: ZooKeeperTree, now_ms: int) -> None:
        """After a transaction: who is registered?"""
        self._now_ms = now_ms
        for broker_id in self.brokers:
            if tree.exists(broker_path(broker_id)) is not None:
                self._gone_since.pop(broker_id, None)
            else:
                self._gone_since.setdefault(broker_id, now_ms)

    def may_be_there(self, broker_id: BrokerId) -> bool:
        """Whether it is registered, or a controller may not know yet that it is not."""
        since_ms = self._gone_since.get(broker_id)
        return self.is_blind or since_ms is None or self._now_ms - since_ms <= NOTICED_MS

    def on_change(
        self, truth: PartitionTruth, before: PartitionState, state: PartitionState, now_ms: int
    ) -> None:
        """ZooKeeper holds another state."""
        if self.is_blind or before.leader_epoch != state.leader_epoch:
            return
        for member in set(state.isr) - set(before.isr):
            since_ms = self._gone_since.get(member)
            if since_ms is not None and now_ms - since_ms > NOTICED_MS:
                raise self.broken(truth, f"broker {member} joined the ISR, and is gone since {since_ms} ms")


class StopsOutsideTheIsr(Invariant):
    """A broker that may stop, as a controller said, is in no ISR of another leader when it does: nobody waits
    for it then, and nobody elects it as it exits (KIP-841).
    """

    def on_clean_stop(self, truth: PartitionTruth, broker_id: BrokerId) -> None:
        """The broker was told that it may stop, and has stopped; the controller is still the same."""
        state = truth.state
        if state is not None and broker_id in state.isr and state.leader != broker_id and state.has_leader:
            raise self.broken(
                truth, f"broker {broker_id} has stopped, as it was told that it may, in the ISR {state.isr}"
            )
