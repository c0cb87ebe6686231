"""Bugs that are put into real brokers, to see that chaos finds them: mutants of the simulation.

A run that finds nothing proves nothing. With ``run.py --spark none --mutant NAME`` every broker process has
the bug from its start on; controllers and clients are as they are. Only mutants of what a broker runs can be
put there, and those are listed here with the faults that bring them out, and the settings that these need.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Final, cast

from simulation.mutants import MUTANTS
from simulation.mutants.mutant import Switch
from sparklog.broker.call import Call
from sparklog.broker.handlers import update_metadata
from sparklog.broker.metadata.metadata_cache import MetadataSnapshot
from sparklog.core.replication.waits import ProduceWaits
from sparklog.model.ids import BrokerEpoch
from sparklog.wire.messages.control.update_metadata import UpdateMetadataRequest


@dataclass(frozen=True)
class Bug:
    """What brings a mutant out. ``needs_machines``: brokers with disks of their own that can lose power."""

    faults: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    needs_machines: bool = False


BUGS: Final[Mapping[str, Bug]] = {
    "ack-on-append": Bug(("kill-leader", "pause-follower-1x", "pause-leader-3x")),
    "read-beyond-high-watermark": Bug(("kill-leader", "pause-follower-1x", "pause-leader-3x")),
    "truncate-to-high-watermark": Bug(("kill-all", "kill-leader", "kill-follower")),
    "producers-are-forgotten": Bug(("kill-leader", "pause-leader-3x")),
    "minimum-is-not-heeded": Bug(("pause-in-turns-3x",)),
    "acknowledges-before-its-fsync": Bug(
        ("power-cut-of-all",), {"log.flush.acks": "fsync"}, needs_machines=True
    ),
}


def _silent_brokers_stay_listed() -> None:
    """Metadata list every broker that left for three seconds more."""

    def ended(call: Call, request: UpdateMetadataRequest, before: MetadataSnapshot) -> Set[BrokerEpoch]:
        return {broker.epoch for broker in before.brokers.values()}

    update_metadata._ended = ended


def _waits_end_with_their_epoch() -> None:
    """A write that waits is refused when its leader leads the next epoch, too."""

    def nothing(self: ProduceWaits, end_offset: int) -> list[tuple[int, int]]:
        return []

    ProduceWaits.take_outlasting = nothing  # type: ignore[method-assign]


OF_ORDER: Final[Mapping[str, Callable[[], None]]] = {
    "silent-brokers-stay-listed": _silent_brokers_stay_listed,
    "waits-end-with-their-epoch": _waits_end_with_their_epoch,
}
"""What only plain producers of librdkafka meet (B86, B87), as ``chaos.order`` has them: no mutants of the
simulation, whose producers are idempotent.
"""


def put_in(names: str) -> None:
    """From now on this process has the bug, for good; or several, with ``+`` between them."""
    for name in names.split("+"):
        _put_in(name)


def _put_in(name: str) -> None:
    if name in OF_ORDER:
        OF_ORDER[name]()
        return
    mutant = next(one for one in MUTANTS if one.name == name)
    mutant.switch_on(Switch(cast(Any, None), []))  # those of ``BUGS`` leave the simulated ZooKeeper alone
