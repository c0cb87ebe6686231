"""The settings that a log acts on."""

from dataclasses import dataclass

from sparklog.model.config import TopicConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """A topic's settings as its logs need them. Defaults are Kafka's."""

    segment_bytes: int = 1_073_741_824
    segment_ms: int = 604_800_000
    index_interval_bytes: int = 4_096
    index_max_bytes: int = 10_485_760
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    cleanup_policy: tuple[str, ...] = ("delete",)

    @classmethod
    def of(cls, topic: TopicConfig) -> "LogConfig":
        policy = topic.get("cleanup.policy")
        assert isinstance(policy, tuple), policy
        return cls(
            segment_bytes=topic.get_int("segment.bytes"),
            segment_ms=topic.get_int("segment.ms"),
            index_interval_bytes=topic.get_int("index.interval.bytes"),
            index_max_bytes=topic.get_int("segment.index.bytes"),
            retention_ms=topic.get_int("retention.ms"),
            retention_bytes=topic.get_int("retention.bytes"),
            cleanup_policy=policy,
        )

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy
