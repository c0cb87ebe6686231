"""The settings of the machine of writes."""

from dataclasses import dataclass
from typing import Self

from sparklog.model.settings.config import TypedSettings

_MS_PER_DAY = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings:
    """Spans in milliseconds."""

    timeout_max_ms: int = 900_000
    retention_ms: int = 365 * _MS_PER_DAY
    """The time that an idle app is remembered after its last change."""
    plain_retention_ms: int = 600_000
    """The same for plain writes, which only their own driver asks for."""
    member_silence_ms: int = 30_000
    """The longest time of a working member without a sign of life; then it is aborted."""
    end_wait_ms: int = 2_000
    """The longest wait of a commit for its markers; then the driver has to ask again."""

    @classmethod
    def of(cls, config: TypedSettings) -> Self:
        """The values of a broker's configuration."""
        return cls(
            timeout_max_ms=config.get_int("transaction.max.timeout.ms"),
            retention_ms=config.get_int("write.app.id.expiration.ms"),
        )
