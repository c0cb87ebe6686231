"""The settings of the machine of writes."""

from dataclasses import dataclass
from typing import Self

from sparklog.model.config import TypedSettings

_MS_PER_DAY = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings:
    """Spans in milliseconds.

    ``member_silence_ms``: after so long without a sign of life a working member is aborted. ``retention_ms``:
    how long an app without an open write is remembered after its last change; ``plain_retention_ms`` is that
    of plain writes, which are asked about by the driver alone. ``end_wait_ms``: longest wait of a commit for
    its markers, before the driver has to ask again.
    """

    timeout_max_ms: int = 900_000
    retention_ms: int = 365 * _MS_PER_DAY
    plain_retention_ms: int = 600_000
    member_silence_ms: int = 30_000
    end_wait_ms: int = 2_000

    @classmethod
    def of(cls, config: TypedSettings) -> Self:
        """The values of a broker's configuration."""
        return cls(
            timeout_max_ms=config.get_int("transaction.max.timeout.ms"),
            retention_ms=config.get_int("write.app.id.expiration.ms"),
        )
