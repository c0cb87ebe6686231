"""The settings that a log acts on."""

from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from sparklog.model.settings.config import TopicConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """A topic's settings as its logs need them. Defaults are Kafka's."""

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    index_interval_bytes: int = 4_096
    index_max_bytes: int = 10_485_760
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    flush_messages: int = 2**63 - 1
    flush_ms: int = 2**63 - 1
    cleanup_policy: tuple[str, ...] = ("delete",)
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = 2**63 - 1
    delete_retention_ms: int = 86_400_000
    remote_storage: bool = False
    remote_copy_disabled: bool = False
    remote_raw: bool = False
    """Whether the remote store gets batches alone, and no Arrow file of their rows."""
    leaves_store: bool = False
    """Whether the log's objects in the remote store are to be deleted."""
    local_retention_ms: int = -1
    local_retention_bytes: int = -1
    """Both bound the segments that stay on disks after their copy. Unless set, they are ``retention_...``."""

    @classmethod
    def of(cls, topic: TopicConfig) -> "LogConfig":
        policy = topic.get("cleanup.policy")
        assert isinstance(policy, tuple), policy
        max_lag_ms = topic.get_int("max.compaction.lag.ms")
        return cls(
            segment_bytes=topic.get_int("segment.bytes"),
            # The active segment is not compacted, so it must not hold records for longer than that.
            segment_ms=min(topic.get_int("segment.ms"), max_lag_ms)
            if "compact" in policy
            else topic.get_int("segment.ms"),
            segment_jitter_ms=topic.get_int("segment.jitter.ms"),
            index_interval_bytes=topic.get_int("index.interval.bytes"),
            index_max_bytes=topic.get_int("segment.index.bytes"),
            retention_ms=topic.get_int("retention.ms"),
            retention_bytes=topic.get_int("retention.bytes"),
            file_delete_delay_ms=topic.get_int("file.delete.delay.ms"),
            flush_messages=topic.get_int("flush.messages"),
            flush_ms=topic.get_int("flush.ms"),
            cleanup_policy=policy,
            min_cleanable_dirty_ratio=topic.get_float("min.cleanable.dirty.ratio"),
            min_compaction_lag_ms=topic.get_int("min.compaction.lag.ms"),
            max_compaction_lag_ms=max_lag_ms,
            delete_retention_ms=topic.get_int("delete.retention.ms"),
            remote_storage=topic.get_bool("remote.storage.enable") and "compact" not in policy,
            remote_copy_disabled=topic.get_bool("remote.log.copy.disable"),
            remote_raw=topic.get_str("remote.log.layout") == "raw",
            leaves_store=topic.get_bool("remote.log.delete.on.disable")
            and not topic.get_bool("remote.storage.enable"),
            local_retention_ms=_local(topic, "retention.ms"),
            local_retention_bytes=_local(topic, "retention.bytes"),
        )

    def roll_age_ms(self, segment: str) -> int:
        """The age at which to roll ``segment``, a path: ``segment_ms`` minus a jitter that depends on the
        path, so that topics that were created together are not rolled together.
        """
        jitter_max_ms = min(self.segment_jitter_ms, self.segment_ms)
        if jitter_max_ms <= 0:
            return self.segment_ms
        return self.segment_ms - crc32c(segment.encode()) % jitter_max_ms

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy


AS_WHOLE: Final = -2
"""The value of ``local.retention.*`` that stands for that of ``retention.*``."""


def _local(topic: TopicConfig, name: str) -> int:
    value = topic.get_int(f"local.{name}")
    return topic.get_int(name) if value == AS_WHOLE else value
