"""An administrator in a dialogue: requests about topics, offsets, settings and quotas."""

from dataclasses import dataclass
from typing import Any, Final

from tests.interop.differential.talk import Talk

TOPIC_TYPE: Final = 2
BROKER_TYPE: Final = 4
SET: Final = 0
DELETE: Final = 1
APPEND: Final = 2
SUBTRACT: Final = 3
EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2
FIRST_BY_TOPIC: Final = 6
"""Of DeleteTopics: a topic is a name or an id."""


@dataclass(slots=True)
class Administration:
    """``topic`` belongs to this dialogue alone, with two partitions; names of others begin with its name."""

    talk: Talk
    topic: str
    topic_id: bytes

    # ---------------------------------------------------------------------------------- topics

    def create(self, name: str, partitions: int = 1, factor: int = 1, **fields: Any) -> Any:
        one = {"name": name, "num_partitions": partitions, "replication_factor": factor, **fields}
        return self.create_all(one)

    def create_all(self, *topics: dict[str, Any], validate_only: int = 0) -> Any:
        return self.talk.ask("CreateTopics", topics=topics, timeout_ms=10_000, validate_only=validate_only)

    def delete(self, *names: str) -> Any:
        topics = [{"name": name} for name in names]
        return self.talk.ask("DeleteTopics", topic_names=names, topics=topics, timeout_ms=10_000)

    def delete_by_id(self, topic_id: bytes, name: str | None = None) -> Any:
        topics = [{"name": name, "topic_id": topic_id}]
        return self.talk.ask("DeleteTopics", version=FIRST_BY_TOPIC, topics=topics, timeout_ms=10_000)

    def extend(self, name: str, count: int, assignments: Any = None, *, validate_only: int = 0) -> Any:
        one = {"name": name, "count": count, "assignments": assignments}
        return self.talk.ask("CreatePartitions", topics=[one], timeout_ms=10_000, validate_only=validate_only)

    def metadata(self, *names: str, **fields: Any) -> Any:
        return self.talk.ask("Metadata", topics=[{"name": name} for name in names], **fields)

    def until_known(self, name: str, error: int = 0) -> None:
        """Until Metadata answer the topic with this error."""
        self.talk.until(
            "Metadata",
            lambda answer: answer["topics"][0]["error_code"] == error,
            version=4,
            topics=[{"name": name}],
        )

    # --------------------------------------------------------------------------------- offsets

    def offset_at(
        self, time_ms: int, *, topic: str | None = None, partition: int = 0, epoch: int = -1
    ) -> Any:
        part = {"partition_index": partition, "timestamp": time_ms, "current_leader_epoch": epoch}
        return self.talk.ask("ListOffsets", topics=[{"name": self._named(topic), "partitions": [part]}])

    def epoch_end(
        self, epoch: int, *, topic: str | None = None, partition: int = 0, current: int = -1
    ) -> Any:
        part = {"partition": partition, "leader_epoch": epoch, "current_leader_epoch": current}
        topics = [{"topic": self._named(topic), "partitions": [part]}]
        return self.talk.ask("OffsetForLeaderEpoch", topics=topics)

    def delete_records(self, *offsets: int, topic: str | None = None, partition: int = 0) -> Any:
        parts = [{"partition_index": partition, "offset": offset} for offset in offsets]
        topics = [{"name": self._named(topic), "partitions": parts}]
        return self.talk.ask("DeleteRecords", topics=topics, timeout_ms=10_000)

    def _named(self, topic: str | None) -> str:
        return self.topic if topic is None else topic

    # ------------------------------------------------------------------------ settings, quotas

    def alter(
        self,
        *changes: tuple[str, int, str | None],
        name: str | None = None,
        kind: int = TOPIC_TYPE,
        validate_only: int = 0,
    ) -> Any:
        """Each change is a setting, what to do with it, and its value."""
        configs = [{"name": key, "config_operation": what, "value": value} for key, what, value in changes]
        resource = {"resource_type": kind, "resource_name": self._named(name), "configs": configs}
        return self.talk.ask("IncrementalAlterConfigs", resources=[resource], validate_only=validate_only)

    def replace(
        self, *settings: tuple[str, str | None], name: str | None = None, kind: int = TOPIC_TYPE
    ) -> Any:
        configs = [{"name": key, "value": value} for key, value in settings]
        resource = {"resource_type": kind, "resource_name": self._named(name), "configs": configs}
        return self.talk.ask("AlterConfigs", resources=[resource])

    def described(self, *keys: str, name: str | None = None, kind: int = TOPIC_TYPE) -> Any:
        wanted = {"resource_type": kind, "resource_name": self._named(name), "configuration_keys": keys}
        return self.talk.ask("DescribeConfigs", resources=[wanted], include_synonyms=0)

    def until_described(self, key: str, value: str) -> None:
        """Until DescribeConfigs has a setting of the topic as it was changed."""
        wanted = {"resource_type": TOPIC_TYPE, "resource_name": self.topic, "configuration_keys": [key]}
        self.talk.until(
            "DescribeConfigs",
            lambda answer: answer["results"][0]["configs"][0]["value"] == value.encode(),
            version=1,
            resources=[wanted],
        )

    def set_quota(
        self, entity: dict[str, str | None], *ops: tuple[str, float, int], validate_only: int = 0
    ) -> Any:
        """Each op is a key, a value, and whether to remove it."""
        entry = {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
            "ops": [{"key": key, "value": value, "remove": remove} for key, value, remove in ops],
        }
        return self.talk.ask("AlterClientQuotas", entries=[entry], validate_only=validate_only)

    def quotas(self, *components: tuple[str, int, str | None], strict: int = 0) -> Any:
        wanted = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]
        return self.talk.ask("DescribeClientQuotas", components=wanted, strict=strict)
