"""Who sent a request: the principal of its connection, and the address of the client.

A broker that forwards a request to the controller puts both into the Envelope (KIP-590), as text. The
controller decodes them strictly although it trusts brokers, because both appear in log lines.
"""

import re
from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import WireError

ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of a connection that has not authenticated."""

PRINCIPAL_BYTES_MAX: Final = 1_024
ADDRESS_BYTES_MAX: Final = 255

_PRINCIPAL: Final = re.compile(r"[A-Za-z]+:.+")
_ADDRESS: Final = re.compile(r"[0-9A-Za-z.:%_-]+")


@dataclass(frozen=True, slots=True)
class Requester:
    """``principal`` is a type and a name (``User:alice``); ``client_host`` is an address or a host's name."""

    principal: str
    client_host: str

    def __str__(self) -> str:
        return f"{self.principal} at {self.client_host}"


def decode_requester(principal: bytes | memoryview | None, client_host: bytes | memoryview) -> Requester:
    """The requester that an Envelope names. Raises WireError if either field is no such thing."""
    if principal is None:
        raise WireError("a forwarded request has no principal")
    return Requester(
        _decode(principal, "principal", PRINCIPAL_BYTES_MAX, _PRINCIPAL),
        _decode(client_host, "client address", ADDRESS_BYTES_MAX, _ADDRESS),
    )


def _decode(data: bytes | memoryview, what: str, bytes_max: int, pattern: re.Pattern[str]) -> str:
    if len(data) > bytes_max:
        raise WireError(
            f"a forwarded request's {what} has {len(data)} bytes; at most {bytes_max} are allowed"
        )
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError as error:
        raise WireError(f"a forwarded request's {what} is not UTF-8: {bytes(data)!r}") from error
    if pattern.fullmatch(text) is None or not text.isprintable():
        raise WireError(f"a forwarded request's {what} is malformed: {text!r}")
    return text
