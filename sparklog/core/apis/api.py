"""One API of the protocol: the columns of its row in ``api_table``."""

import enum
import re
from dataclasses import dataclass
from typing import Final, Literal

from sparklog.core.security.acl import Right

Family = Literal["data", "discovery", "groups", "transactions", "writes", "admin", "security", "control"]
"""The packages of ``sparklog.wire.messages``."""

NEVER: Final = 2**15
"""``flexible_from`` of an API without a flexible version: above every version."""

OWN_KEYS_FROM: Final = 10_000
"""sparklog's own APIs have keys far above Kafka's."""


class ListenerKind(enum.Enum):
    """What a listener is for. The listener that is named for brokers is also one for clients."""

    clients = "clients"
    brokers = "brokers"
    controller = "controller"


class Quota(enum.Enum):
    """What a request uses up. Requests between brokers and the controller use up nothing."""

    none = "none"
    produce = "produce"
    """Bytes written (KIP-13), and the time of handlers (KIP-124)."""
    fetch = "fetch"
    """Bytes read, and the time of handlers."""
    request = "request"
    """The time of handlers alone."""
    controller_mutation = "controller mutation"
    """Partitions created and deleted (KIP-599), and the time of handlers."""


class Code(enum.Flag):
    """Code of an API, which layers forbid to stand in the table. It is found by the API's name."""

    handler = enum.auto()
    """A row of ``broker/apis.py``."""
    forward = enum.auto()
    """Brokers forward the whole request to the controller (``broker/forwarding.py``)."""
    command = enum.auto()
    """A row of ``wire/commands/command_apis.py``: the controller decides."""
    built_in = enum.auto()
    """The controller answers without a command (``controller/handlers.py``)."""


class Waits(enum.Enum):
    """What a broker waits for before it answers a request, or while it does."""

    nothing = enum.auto()
    """A handler may wait for replicas or records too, but not on the thread that runs it."""
    controller = enum.auto()
    """The handler asks the controller, and blocks until it answers. Request handlers are few: while the
    controller is away, two such requests would stop the broker for all clients, so other threads take them.
    """
    first_report = enum.auto()
    """The answer is what the controller reported of the cluster, and waits for its first report
    (``broker/metadata/first_report``).
    """


@dataclass(frozen=True, slots=True)
class Api:
    """The versions ``min`` to ``max`` are served, both included. From ``flexible_from`` on they are flexible
    (KIP-482): they have compact lengths and tagged fields, and a header that ends in tags.

    A request needs the ``rights``, each under its condition; without any, everybody may ask.
    """

    key: int
    name: str
    min: int
    max: int
    flexible_from: int
    family: Family
    rights: tuple[Right, ...]
    quota: Quota
    listeners: frozenset[ListenerKind]
    code: Code
    waits: Waits = Waits.nothing
    is_short: bool = False
    """A small request is short work, and waits on its thread for no other broker."""
    begins_beside: bool = False
    """A request may begin while earlier ones of its connection wait."""

    def __contains__(self, version: int) -> bool:
        return self.min <= version <= self.max

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_from

    @property
    def is_for_clients(self) -> bool:
        return ListenerKind.clients in self.listeners

    @property
    def is_forwarded(self) -> bool:
        """Brokers forward requests of clients to the controller, whole or in part."""
        return self.is_for_clients and Code.command in self.code

    @property
    def is_own(self) -> bool:
        """The API is sparklog's, and Kafka has none like it."""
        return self.key >= OWN_KEYS_FROM

    @property
    def module(self) -> str:
        """The API's name in the spelling of a module: ``init_producer_id`` for ``InitProducerId``."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()
