"""An administrator that changes the columns of the typed topic: it looks, changes, and looks again.

A *hasty* change starts from what it saw last, whatever was changed since.
"""

from simulation.clients.client import Client, Workplace
from simulation.clients.typed.column_asker import ColumnAsker
from simulation.invariants.typed.columns import ColumnRules
from simulation.schedule import dice
from sparklog.model.errors import ErrorCode, SchemaError
from sparklog.model.ids import TopicPartition
from sparklog.model.schema.change_texts import parse_change
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.evolution import changed
from sparklog.wire.messages.admin.alter_schema import (
    AlterSchemaChange,
    AlterSchemaRequest,
    AlterSchemaResponse,
)

CHANGES = (
    "add-column {} int",
    "add-column s.{} int",
    "add-column {} bigint",
    "drop-column {}",
    "drop-column s.{}",
    "rename-column {}={}",
    "rename-column s.{}={}",
    "widen-column {} bigint",
    "widen-column s.{} bigint",
)
NAMES = ("a", "b", "c", "d", "e", "f")
HASTY = 0.3
"""Share of its changes."""
TRIES_MAX = 20
COLUMNS_MAX = 5
VERSIONS_MAX = 40


class Changer(Client):
    def __init__(
        self,
        place: Workplace,
        number: int,
        topic_partition: TopicPartition,
        rules: ColumnRules,
        *,
        change_every_ms: float,
        controllers: tuple[str, ...],
    ) -> None:
        super().__init__(place, f"changer-{number}", topic_partition)
        self.is_stopping = False
        self._columns = ColumnAsker(self, place.hosts, rules, self._change)
        self._rules = rules
        self._every_ms = change_every_ms
        self._controllers = controllers
        self._dice = dice(place.seed, f"{self.name} changes")

    def go_on(self) -> None:
        """By the clock alone."""
        self.later(self._dice.expovariate(1 / self._every_ms), self._look)

    def _look(self) -> None:
        if self.is_stopping:
            return
        if self._columns.known is not None and self._dice.random() < HASTY:
            self._change()
        else:
            self._columns.ask()

    def _change(self) -> None:
        known = self._columns.known
        drawn = None if known is None or self.is_stopping else self._drawn(known.document)
        if known is None or drawn is None:
            self.go_on()
            return
        change, outcome = drawn
        operation, _, text = change.partition(" ")
        request = AlterSchemaRequest(
            topic=self.topic_partition.topic,
            from_version=known.document.version,
            changes=[AlterSchemaChange(operation=operation, text=text)],
        )
        self._place.story.tell(self.name, f"wants {change!r} after version {known.document.version}")
        self.call(
            self._dice.choice(self._controllers),
            request,
            lambda response: self._answered(outcome, response),
            lambda _: self.go_on(),
        )

    def _drawn(self, document: SchemaDocument) -> tuple[str, SchemaDocument] | None:
        if document.version >= VERSIONS_MAX:
            return None
        for _ in range(TRIES_MAX):
            text = self._dice.choice(CHANGES)
            if text.startswith("add") and len(document.at(document.version)) >= COLUMNS_MAX:
                continue
            change = text.format(self._dice.choice(NAMES), self._dice.choice(NAMES))
            try:
                return change, changed(document, [parse_change(*change.split(" ", 1))])
            except SchemaError:
                continue
        return None

    def _answered(self, outcome: SchemaDocument, response: AlterSchemaResponse) -> None:
        self._place.story.tell(self.name, f"{response.error_code.name}, version {response.version}")
        if response.error_code is ErrorCode.none:
            self._rules.marks.reach("columns were changed")
            self._rules.made(outcome, response.version)
        elif response.error_code is ErrorCode.invalid_update_version:
            self._rules.marks.reach("a change of columns was overtaken")
        self.go_on()
