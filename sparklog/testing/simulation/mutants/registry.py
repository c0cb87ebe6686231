"""All mutants, by area."""

from typing import Final

from sparklog.testing.simulation.mutants.broker import BROKER
from sparklog.testing.simulation.mutants.compaction import COMPACTION
from sparklog.testing.simulation.mutants.control import CONTROL
from sparklog.testing.simulation.mutants.elections import ELECTIONS
from sparklog.testing.simulation.mutants.epochs import EPOCHS
from sparklog.testing.simulation.mutants.failover import FAILOVER
from sparklog.testing.simulation.mutants.follower import FOLLOWER
from sparklog.testing.simulation.mutants.identities import IDENTITIES
from sparklog.testing.simulation.mutants.isr import ISR
from sparklog.testing.simulation.mutants.leader import LEADER
from sparklog.testing.simulation.mutants.mutant import Mutant
from sparklog.testing.simulation.mutants.proposals import PROPOSALS
from sparklog.testing.simulation.mutants.recovery import RECOVERY
from sparklog.testing.simulation.mutants.restarts import RESTARTS
from sparklog.testing.simulation.mutants.storage import STORAGE

MUTANTS: Final[tuple[Mutant, ...]] = (
    *LEADER,
    *ISR,
    *FOLLOWER,
    *EPOCHS,
    *FAILOVER,
    *BROKER,
    *CONTROL,
    *PROPOSALS,
    *ELECTIONS,
    *STORAGE,
    *RECOVERY,
    *RESTARTS,
    *COMPACTION,
    *IDENTITIES,
)


def find_mutant(name: str) -> Mutant | None:
    return next((mutant for mutant in MUTANTS if mutant.name == name), None)
