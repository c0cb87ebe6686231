"""All mutants, by area."""

from typing import Final

from simulation.mutants.broker import BROKER
from simulation.mutants.columns import COLUMNS
from simulation.mutants.compaction import COMPACTION
from simulation.mutants.controllers.control import CONTROL
from simulation.mutants.controllers.operations import OPERATIONS
from simulation.mutants.controllers.throttles import THROTTLES
from simulation.mutants.coordinators import COORDINATORS
from simulation.mutants.elections import ELECTIONS
from simulation.mutants.epochs import EPOCHS
from simulation.mutants.exactly_once.cuts import CUTS
from simulation.mutants.exactly_once.transactions import TRANSACTIONS
from simulation.mutants.exactly_once.writes import WRITES
from simulation.mutants.failover import FAILOVER
from simulation.mutants.follower import FOLLOWER
from simulation.mutants.groups import GROUPS
from simulation.mutants.histories import HISTORIES
from simulation.mutants.identities import IDENTITIES
from simulation.mutants.isr import ISR
from simulation.mutants.leader import LEADER
from simulation.mutants.lean_fetch import LEAN_FETCH
from simulation.mutants.life import LIFE
from simulation.mutants.mutant import Mutant
from simulation.mutants.proposals import PROPOSALS
from simulation.mutants.recovery import RECOVERY
from simulation.mutants.restarts import RESTARTS
from simulation.mutants.security.principals import PRINCIPALS
from simulation.mutants.storage import STORAGE
from simulation.mutants.tiering import TIERING

MUTANTS: Final[tuple[Mutant, ...]] = (
    *LEADER,
    *ISR,
    *FOLLOWER,
    *LEAN_FETCH,
    *EPOCHS,
    *FAILOVER,
    *BROKER,
    *CONTROL,
    *OPERATIONS,
    *THROTTLES,
    *PROPOSALS,
    *ELECTIONS,
    *STORAGE,
    *RECOVERY,
    *RESTARTS,
    *LIFE,
    *COMPACTION,
    *IDENTITIES,
    *COORDINATORS,
    *GROUPS,
    *TRANSACTIONS,
    *WRITES,
    *CUTS,
    *TIERING,
    *HISTORIES,
    *COLUMNS,
    *PRINCIPALS,
)


def find_mutant(name: str) -> Mutant | None:
    return next((mutant for mutant in MUTANTS if mutant.name == name), None)
