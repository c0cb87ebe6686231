"""The leader's view of the ISR: committed, or with one proposed change in flight.

Only the controller writes the ISR. Between a proposal and its answer either set may be in force, so the
leader waits for the larger (Kafka's "maximal ISR"). An additional replica in the wait is always safe; a
missing one loses acknowledged records.
"""

from dataclasses import dataclass
from typing import assert_never

from sparklog.model.ids import BrokerId


@dataclass(frozen=True, slots=True)
class CommittedIsr:
    """The last ISR in ZooKeeper that this leader has received, at ``partition_epoch``."""

    members: frozenset[BrokerId]
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class ExpandingIsr:
    """A proposal to add ``joining`` is in flight."""

    committed: CommittedIsr
    joining: BrokerId
    proposal: int


@dataclass(frozen=True, slots=True)
class ShrinkingIsr:
    """A proposal to remove ``leaving`` is in flight."""

    committed: CommittedIsr
    leaving: frozenset[BrokerId]
    proposal: int


IsrState = CommittedIsr | ExpandingIsr | ShrinkingIsr


def committed_isr(isr: IsrState) -> CommittedIsr:
    return isr if isinstance(isr, CommittedIsr) else isr.committed


def effective_isr(isr: IsrState) -> frozenset[BrokerId]:
    """The larger candidate set, which holds back the high watermark."""
    match isr:
        case CommittedIsr(members):
            return members
        case ExpandingIsr(committed, joining):
            return committed.members | {joining}
        case ShrinkingIsr(committed):
            return committed.members
        case _:
            assert_never(isr)


def pending_proposal(isr: IsrState) -> int | None:
    """The number of the proposal in flight; there is at most one."""
    return None if isinstance(isr, CommittedIsr) else isr.proposal
