"""The settings of the group machine, with Kafka's names and defaults."""

from dataclasses import dataclass
from typing import Self

from sparklog.model.settings.config import TypedSettings

_MS_PER_MINUTE = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Limits are inclusive. ``docs/settings.md`` says what each does."""

    session_timeout_min_ms: int = 6_000
    session_timeout_max_ms: int = 1_800_000
    size_max: int = 2**31 - 1
    initial_rebalance_delay_ms: int = 3_000
    offset_metadata_max_length: int = 4_096
    """In UTF-16 units, as Java counts the length of a string."""
    offsets_retention_ms: int = 10_080 * _MS_PER_MINUTE
    offsets_retention_check_interval_ms: int = 600_000

    @classmethod
    def of(cls, config: TypedSettings) -> Self:
        """The values of a broker's configuration."""
        return cls(
            session_timeout_min_ms=config.get_int("group.min.session.timeout.ms"),
            session_timeout_max_ms=config.get_int("group.max.session.timeout.ms"),
            size_max=config.get_int("group.max.size"),
            initial_rebalance_delay_ms=config.get_int("group.initial.rebalance.delay.ms"),
            offset_metadata_max_length=config.get_int("offset.metadata.max.bytes"),
            offsets_retention_ms=config.get_int("offsets.retention.minutes") * _MS_PER_MINUTE,
            offsets_retention_check_interval_ms=config.get_int("offsets.retention.check.interval.ms"),
        )
