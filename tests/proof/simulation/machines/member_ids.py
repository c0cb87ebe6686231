"""Member ids that brokers give: drawn, as everything else in a run."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from simulation.schedule import dice
from sparklog.broker.handlers.groups import join_group


class _DrawnUuids:
    """Takes the place of the module ``uuid`` where member ids are made."""

    def __init__(self, seed: int) -> None:
        self._draw: Final = dice(seed, "member ids")

    def uuid4(self) -> uuid.UUID:
        return uuid.UUID(int=self._draw.getrandbits(128))


@contextmanager
def drawn_member_ids(seed: int) -> Iterator[None]:
    """For the length of a run."""
    before = vars(join_group)["uuid"]
    vars(join_group)["uuid"] = _DrawnUuids(seed)
    try:
        yield
    finally:
        vars(join_group)["uuid"] = before
