"""The APIs of the protocol (``core/apis/api_table``), by who speaks them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sparklog.core.apis.api import Api
from sparklog.core.apis.api_table import APIS

API_VERSIONS: Final[Mapping[int, Api]] = MappingProxyType(
    {key: api for key, api in APIS.items() if api.is_for_clients and not api.is_own}
)
"""What brokers advertise to clients: the shape of Kafka 3.6."""

INTERNAL_VERSIONS: Final[Mapping[int, Api]] = MappingProxyType(
    {key: api for key, api in APIS.items() if not (api.is_for_clients or api.is_own)}
)
"""What brokers and the controller alone speak; both ends have the same."""

OWN_VERSIONS: Final[Mapping[int, Api]] = MappingProxyType(
    {key: api for key, api in APIS.items() if api.is_own}
)
"""sparklog's own APIs. They are never in the list of ApiVersions; a tagged field of it tells them to
sparklog's clients, and to brokers those for brokers.
"""

KNOWN_VERSIONS: Final = APIS
"""Everything that can be encoded and decoded."""

API_VERSIONS_KEY: Final = 18
"""ApiVersions is special: its response header is never flexible, and it answers versions that nobody has."""
