"""What a server's mechanism says to each token of a client, whichever mechanism it is."""

from dataclasses import dataclass
from typing import Protocol


class CredentialsRefused(Exception):  # noqa: N818 (it states a fact)
    """The login has failed. The text goes to the client: it tells nothing that a guesser may use."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's token. With ``user`` the login is complete, and the user has proven to be that one."""

    token: bytes
    user: str | None = None


class ServerMechanism(Protocol):
    """One login under way."""

    @property
    def name(self) -> str:
        """As clients choose it: ``SCRAM-SHA-512``."""
        ...

    def on_token(self, token: bytes) -> Answer:
        """Go one step further. Raises CredentialsRefused; no token may follow then."""
        ...
