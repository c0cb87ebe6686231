"""What the page may do, and for whom: the settings ``web.*``."""

from dataclasses import dataclass
from typing import Final

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    """``allowed_hosts``: names by which browsers may call the page, beside ``host`` and those of loopback.
    ``shows_records``: whether records are shown at all.
    """

    host: str = "127.0.0.1"
    allowed_hosts: tuple[str, ...] = ()
    shows_records: bool = True

    def is_allowed(self, host: str) -> bool:
        """Whether a Host header names this page; any other may be a foreign site's name for our address."""
        name = _without_port(host).rstrip(".").casefold()
        return name in {_bare(one).casefold() for one in (*LOOPBACK, self.host, *self.allowed_hosts)}


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _bare(host: str) -> str:
    return host.strip().removeprefix("[").removesuffix("]")
