"""The phases of a controller's term of office: what it waits for."""

from enum import StrEnum
from typing import Final

from sparklog.core.transition_table import Transition, states_before


class Phase(StrEnum):
    NEW = "new"
    SETTLED = "settled"
    """Nothing is asked of ZooKeeper, and nothing is left to decide."""
    WRITING = "writing"
    READING_BROKERS = "reading brokers"
    READING_REGISTERED = "reading registered"
    READING_ENTITIES = "reading entities"
    RELOADING = "reloading"
    RESIGNED = "resigned"


TRANSITIONS: Final = (
    Transition(Phase.NEW, "on_activated", Phase.SETTLED),
    Transition(Phase.SETTLED, "a step decides on a write", Phase.WRITING),
    Transition(Phase.WRITING, "on_written", Phase.SETTLED),
    Transition(Phase.WRITING, "on_write_refused: the registration to remove is gone", Phase.SETTLED),
    Transition(Phase.WRITING, "on_write_refused: an incarnation moved", Phase.READING_BROKERS),
    Transition(Phase.READING_BROKERS, "on_brokers", Phase.SETTLED),
    Transition(Phase.WRITING, "on_write_refused for another reason, on_write_lost", Phase.RELOADING),
    Transition(Phase.RELOADING, "on_reloaded", Phase.SETTLED),
    Transition(
        Phase.SETTLED, "settings for a broker that is not alive, or a removal", Phase.READING_REGISTERED
    ),
    Transition(Phase.READING_REGISTERED, "on_registered", Phase.SETTLED),
    Transition(Phase.SETTLED, "a command about users or quotas", Phase.READING_ENTITIES),
    Transition(Phase.WRITING, "on_write_refused: a node of users or quotas moved", Phase.READING_ENTITIES),
    Transition(Phase.READING_ENTITIES, "on_entities", Phase.SETTLED),
    Transition(Phase.WRITING, "the controller epoch moved, or too many refusals in a row", Phase.RESIGNED),
)

PHASES_BEFORE: Final = states_before(TRANSITIONS)
"""From which phases a machine enters each phase."""
