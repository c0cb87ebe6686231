"""The quotas that there are, with the types of their values."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

QuotaType = Literal["INT", "LONG", "DOUBLE"]
"""The type of a value under Kafka's name. Requests have doubles; ZooKeeper holds texts."""

OF_CLIENTS: Final[Mapping[str, QuotaType]] = MappingProxyType(
    {
        "producer_byte_rate": "LONG",
        "consumer_byte_rate": "LONG",
        "request_percentage": "DOUBLE",
        "controller_mutation_rate": "DOUBLE",
    }
)
"""The quotas of users, of clients, and of a client of a user."""

OF_ADDRESSES: Final[Mapping[str, QuotaType]] = MappingProxyType({"connection_creation_rate": "INT"})
"""The quotas of addresses."""
