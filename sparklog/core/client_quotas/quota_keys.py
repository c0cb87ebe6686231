"""The quotas that there are, with the types of their values."""

from collections.abc import Mapping
from math import isfinite
from types import MappingProxyType
from typing import Final, Literal

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

QuotaType = Literal["INT", "LONG", "DOUBLE"]
"""The type of a value under Kafka's name. Requests have doubles; ZooKeeper holds texts."""

OF_CLIENTS: Final[Mapping[str, QuotaType]] = MappingProxyType(
    {
        PRODUCER_BYTE_RATE: "LONG",
        CONSUMER_BYTE_RATE: "LONG",
        REQUEST_PERCENTAGE: "DOUBLE",
        CONTROLLER_MUTATION_RATE: "DOUBLE",
    }
)
"""The quotas of users, of clients, and of a client of a user."""

OF_ADDRESSES: Final[Mapping[str, QuotaType]] = MappingProxyType({CONNECTION_CREATION_RATE: "INT"})
"""The quotas of addresses."""


def quotas_in(configs: Mapping[str, str]) -> dict[str, float]:
    """The quotas among the settings of a node, by key. Users' nodes may hold credentials as well, and another
    tool may have written a value that is no quota: both are left out.
    """
    quotas = {}
    for key, text in configs.items():
        if key in OF_CLIENTS or key in OF_ADDRESSES:
            try:
                value = float(text)
            except ValueError:
                continue
            if isfinite(value) and value >= 0:
                quotas[key] = value
    return quotas
