"""What transactional clients have, whatever their library: an identity, and transactions with names.

A life of a client is one producer under the transactional id that all its lives have. So each life fences the
one before it, which may only stall.
"""

import random
from typing import Final, Literal

from chaos.clients.client_parts import Numbers, Record, Settings, begin_send
from histories import Writer

TIMEOUT_MS: Final = 10_000
"""After which an open transaction is aborted by its coordinator."""
RECORDS_MAX: Final = 8
COMMITS: Final = 0.7
"""So many transactions are committed, the others aborted."""
HELD: Final = 0.02
"""So many stay open until they are aborted from outside."""
HOLD_S: Final = 1.3 * TIMEOUT_MS / 1_000
PIPELINE: Final = "pipeline"
"""The group of the pipelines."""
ASK_S: Final = 5.0
INSIST_S: Final = 30.0
"""For so long a request that may be tried again is tried again."""


class Identity:
    """Writes down what a transactional producer does."""

    def __init__(self, settings: Settings, writer: Writer) -> None:
        self.name, self.transactional_id = settings.name, settings.name.split("/")[0]
        self._settings, self._writer = settings, writer
        self._numbers = Numbers(settings.name)
        self._transactions = 0

    @property
    def transaction(self) -> str:
        """The name of the one that began last."""
        return f"{self.name}#{self._transactions}"

    def begin(self) -> None:
        self._transactions += 1

    def begin_send(
        self, topic: str, partition: int, rng: random.Random, source: str | None = None
    ) -> tuple[int, Record]:
        """Before a record of this transaction is sent."""
        return begin_send(
            self._settings,
            self._writer,
            self._numbers,
            topic,
            partition,
            rng,
            transaction=self.transaction,
            source=source,
        )

    def init(self) -> int:
        return self._writer.init(self.name, self.transactional_id, self.name)

    def finish(self, *, commit: bool) -> int:
        return self._writer.finish(self.name, self.transaction, commit=commit)

    def done(self, op: int, what: Literal["init", "finish"], error: object | None = None) -> None:
        """Whatever the error: what was asked for may have happened."""
        if error is None:
            self._writer.happened(self.name, op, what=what)
        else:
            self._writer.unknown(self.name, op, error, what=what)

    def trouble(self, error: object) -> None:
        self._writer.line(self.name, "info", "poll", error=str(error)[:900])
