"""The settings of the transaction machine, with Kafka's names and defaults."""

from dataclasses import dataclass
from typing import Self

from sparklog.model.settings.config import TypedSettings

_MS_PER_DAY = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Spans in milliseconds. ``docs/settings.md`` says what each does."""

    timeout_max_ms: int = 900_000
    id_expiration_ms: int = 7 * _MS_PER_DAY
    expiration_check_interval_ms: int = 3_600_000

    @classmethod
    def of(cls, config: TypedSettings) -> Self:
        """The values of a broker's configuration."""
        return cls(
            timeout_max_ms=config.get_int("transaction.max.timeout.ms"),
            id_expiration_ms=config.get_int("transactional.id.expiration.ms"),
            expiration_check_interval_ms=config.get_int(
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ),
        )
