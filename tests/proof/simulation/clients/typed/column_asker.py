"""Asks brokers for the columns of the typed topic, as sparklog's clients do."""

from collections.abc import Callable
from typing import Final

from simulation.clients.client import Client
from simulation.invariants.typed.columns import ColumnRules
from sparklog.model.errors import ErrorCode
from sparklog.model.schema.document import SchemaDocument
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.wire.messages.discovery.describe_schema import DescribeSchemaRequest, DescribeSchemaResponse

AGAIN_MS: Final = 150


class ColumnAsker:
    """What one client knows of the columns. ``on_news`` is called with each answer that has columns."""

    def __init__(
        self, client: Client, hosts: tuple[str, ...], rules: ColumnRules, on_news: Callable[[], None]
    ) -> None:
        self.known: TopicColumns | None = None
        self._client = client
        self._hosts = hosts
        self._rules = rules
        self._on_news = on_news
        self._is_asking = False
        self._turn = 0

    def ask(self) -> None:
        """Ask some broker, unless that goes on already."""
        if self._is_asking:
            return
        self._is_asking = True
        self._turn += 1
        host = self._hosts[self._turn % len(self._hosts)]
        request = DescribeSchemaRequest(topics=[self._client.topic_partition.topic])
        self._client.call(host, request, self._answered, lambda _: self._failed())

    def _answered(self, response: DescribeSchemaResponse) -> None:
        described = response.topics[0] if response.topics else None
        if described is None or described.error_code is not ErrorCode.none or described.document is None:
            self._failed()
            return
        self._is_asking = False
        document = SchemaDocument.decode(bytes(described.document))
        self._rules.see(document)
        if self.known is None or self.known.document.version < document.version:
            self.known = TopicColumns(document)
        self._on_news()

    def _failed(self) -> None:
        def again() -> None:
            self._is_asking = False
            self.ask()

        self._client.later(AGAIN_MS, again)
