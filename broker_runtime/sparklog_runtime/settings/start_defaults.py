"""What ``sparklog start`` chooses for topics where no setting names it, and where a directory keeps it.

    default.replication.factor   the lesser of 3 and the number of brokers, at every start
    min.insync.replicas          2, from three brokers on; only of a directory that is new

The second one holds for topics that exist, too: a topic of two replicas would stop with one of its brokers.
So a directory that has data keeps what it had. What was chosen for a new one is kept in
``DIR/defaults.properties`` for later starts.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.coordinator_settings import REPLICATION_FACTOR_MAX
from sparklog_runtime.settings.properties import read_properties

logger: Final = logging.getLogger(__name__)

FACTOR: Final = "default.replication.factor"
MIN_ISR: Final = "min.insync.replicas"
BROKERS_FOR_MIN_ISR: Final = 3
CHOSEN_MIN_ISR: Final = "2"

_HEADING: Final = "# Chosen by the first `sparklog start` on this directory; -c goes over it.\n"


def chosen_defaults(
    settings: Mapping[str, str], brokers: int, kept_file: Path, *, is_new: bool
) -> dict[str, str]:
    """The settings that ``settings`` do not name, for a start of so many brokers.

    ``is_new``: the directory had no start before. ConfigError if ``kept_file`` cannot be read.
    """
    if not brokers:
        return {}
    kept: dict[str, str] = {}
    if is_new and brokers >= BROKERS_FOR_MIN_ISR:
        kept = {MIN_ISR: CHOSEN_MIN_ISR}
    elif kept_file.exists():
        kept = read_properties(kept_file)
    chosen = {FACTOR: str(min(REPLICATION_FACTOR_MAX, brokers)), **kept}
    return {name: value for name, value in chosen.items() if name not in settings}


def keep_defaults(kept_file: Path, chosen: Mapping[str, str]) -> None:
    """Have later starts on the same directory choose the same, where that is not of the number of brokers."""
    if MIN_ISR in chosen and not kept_file.exists():
        kept_file.write_text(f"{_HEADING}{MIN_ISR}={chosen[MIN_ISR]}\n", encoding="utf-8")


def defaults_in_words(config: BrokerConfig) -> str:
    """What a start says of the replicas of topics."""
    factor, min_isr = config.get_int(FACTOR), config.get_int(MIN_ISR)
    return (
        f"topics have {_replicas(factor)} unless they say otherwise ({FACTOR}={factor}), and writes with "
        f"acks=all need {min(min_isr, factor)} in sync ({MIN_ISR}={min_isr}); -c NAME=VALUE changes either"
    )


def differences_in_words(own: BrokerConfig, elected: Mapping[str, str], address: str) -> list[str]:
    """A warning for each of these settings that the controller in office, at ``address``, has otherwise."""
    return [
        f"{name} is {value} at the controller in office, {address}, and {own.get_int(name)} here: {value} "
        f"counts, but once a controller of this application is elected, its own does; give all applications "
        f"the same, here with -c {name}={value}"
        for name, value in elected.items()
        if name in (FACTOR, MIN_ISR) and value != str(own.get_int(name))
    ]


def _replicas(number: int) -> str:
    return "1 replica" if number == 1 else f"{number} replicas"
