"""What a quota is for: users, clients, addresses (KIP-546)."""

from dataclasses import dataclass
from typing import Final

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """What a quota is for: parts of different types, such as a user together with a client id.

    A part is a type and a name. None instead of a name stands for every name without a quota of its own.
    """

    parts: tuple[tuple[str, str | None], ...]

    @property
    def by_type(self) -> dict[str, str | None]:
        return dict(self.parts)

    def __str__(self) -> str:
        return ", ".join(
            f"the default {kind}" if name is None else f"{kind} {name[:60]!r}" for kind, name in self.parts
        )
