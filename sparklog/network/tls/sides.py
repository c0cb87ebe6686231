"""What a TLS connection asks the settings of its side. Contexts change when their files do."""

import ssl
from typing import Protocol


class TlsServer(Protocol):
    """The accepting side of one listener; for any thread."""

    def context(self) -> ssl.SSLContext:
        """The context for a connection that is accepted now."""
        ...

    def principal_of(self, certificate: bytes | None) -> str:
        """The principal of a client with this certificate (DER), or without any: ``User:NAME``.

        Raises ValueError, with a reason, for a certificate whose name is none that a principal may have.
        """
        ...


class TlsClient(Protocol):
    """The dialling side; for any thread."""

    @property
    def checks_host_names(self) -> bool:
        """Whether the broker's certificate must name the host that is dialled."""
        ...

    def context(self) -> ssl.SSLContext:
        """The context for a connection that is opened now."""
        ...
