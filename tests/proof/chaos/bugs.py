"""Bugs that are put into real brokers, to see that chaos finds them: mutants of the simulation.

A run that finds nothing proves nothing. With ``run.py --spark none --mutant NAME`` every broker process has
the bug from its start on; controllers and clients are as they are. Only mutants of what a broker runs can be
put there, and those are listed here with the faults that bring them out, and the settings that these need.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from simulation.mutants import MUTANTS
from simulation.mutants.mutant import Switch


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


def put_in(name: str) -> None:
    """From now on this process has the bug, for good."""
    mutant = next(one for one in MUTANTS if one.name == name)
    mutant.switch_on(Switch(cast(Any, None), []))  # those of ``BUGS`` leave the simulated ZooKeeper alone
