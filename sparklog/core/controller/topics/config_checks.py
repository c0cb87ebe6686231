"""Whether a change of settings is legal, with the errors that Kafka 3.9 answers.

An illegal value of a topic is INVALID_CONFIG. One of a broker is INVALID_REQUEST, an inconsistency that Kafka
keeps for the sake of its clients (KAFKA-13609).

Internal topics are always compacted: retention by time or size would delete committed offsets that are still
in use. (Kafka creates them compacted, and lets the policy be changed.) Typed topics are never compacted: a
delete would need a kind of row.
"""

from collections.abc import Iterable, Mapping

from sparklog.core.controller.commands.config_commands import ALL_BROKERS, ConfigChange
from sparklog.core.controller.state.write_size import check_configs
from sparklog.core.controller.state.znodes import encode_configs
from sparklog.model.errors import ConfigError, ErrorCode, KafkaError
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.model.kafka_numbers import BROKER_RESOURCE, TOPIC_RESOURCE
from sparklog.model.settings.config import check_broker_settings, check_topic_settings
from sparklog.model.settings.kafka_names import (
    KAFKA_BROKER_PROPERTIES,
    KAFKA_DYNAMIC_PROPERTIES,
    without_listener,
)
from sparklog.model.settings.promises import refuse_changes_of_security, refuse_unkept_promise
from sparklog.model.settings.settings_table import (
    BROKER_SETTINGS,
    CLUSTER_WIDE_SETTINGS,
    DYNAMIC_BROKER_SETTINGS,
)


def check_form(change: ConfigChange) -> None:
    """Raises KafkaError (INVALID_REQUEST) if the change makes no sense whatever its resource is like."""
    if change.kind not in (TOPIC_RESOURCE, BROKER_RESOURCE):
        message = f"Unknown resource type {change.kind}: topics (2) and brokers (4) have settings"
        raise KafkaError(ErrorCode.invalid_request, message)
    if change.kind == TOPIC_RESOURCE and not change.name:
        raise KafkaError(ErrorCode.invalid_request, "Default topic resources are not allowed.")
    names = [one.name for one in change.changes]
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.invalid_request, "Error due to duplicate config keys")
    nulls = [one.name for one in change.changes if one.operation != "delete" and one.value is None]
    if nulls:
        raise KafkaError(ErrorCode.invalid_request, f"Null value not supported for : {', '.join(nulls)}")
    unknown = [one.name for one in change.changes if one.operation is None]
    if unknown:
        message = f"Unknown operations type for {', '.join(unknown)}: use set, delete, append or subtract"
        raise KafkaError(ErrorCode.invalid_request, message)


def check_change(
    change: ConfigChange, before: Mapping[str, str], after: Mapping[str, str], *, is_typed: bool
) -> None:
    """Raises KafkaError if the resource may not have the settings ``after`` instead of ``before``."""
    check_configs(change.name, encode_configs(after))
    if change.kind == TOPIC_RESOURCE:
        check_topic_values(change.name, after, is_typed=is_typed)
        _check_leaves_no_store(before, after)
        return
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    _check_broker_values({name: after[name] for name in changed & after.keys()})
    everywhere = sorted(changed & CLUSTER_WIDE_SETTINGS)
    if everywhere and change.name != ALL_BROKERS:
        message = (
            f"{', '.join(everywhere)} holds for the whole cluster: set it for all brokers, not for broker "
            f"{change.name} alone."
        )
        raise KafkaError(ErrorCode.invalid_request, message)


def check_topic_values(topic: str, configs: Mapping[str, str], *, is_typed: bool) -> None:
    """Raises KafkaError (INVALID_CONFIG) if the topic may not have these settings."""
    try:
        check_topic_settings(configs)
    except ConfigError as error:
        raise KafkaError(ErrorCode.invalid_config, str(error)) from None
    kind = "typed" if is_typed else "internal"
    for name, value in _forced_settings(topic, is_typed=is_typed).items():
        given = configs.get(name, value)
        if given.strip() != value:
            message = f"{name} of {kind} topic '{topic}' is always {value}, not '{given}': do not set it"
            raise KafkaError(ErrorCode.invalid_config, message)


def _check_leaves_no_store(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """As KIP-950: what is in the remote store would be in no log any more, so somebody must want that."""
    leaves = _is_on("remote.storage.enable", before) and not _is_on("remote.storage.enable", after)
    if leaves and not _is_on("remote.log.delete.on.disable", after):
        message = (
            "remote.storage.enable=true cannot be taken back, because the remote store may have segments of "
            "the topic: set remote.log.copy.disable=true to copy no more, or "
            "remote.log.delete.on.disable=true with it to delete what the store has"
        )
        raise KafkaError(ErrorCode.invalid_config, message)


def _is_on(name: str, configs: Mapping[str, str]) -> bool:
    return configs.get(name, "").strip().lower() == "true"


def with_forced_settings(topic: str, configs: Mapping[str, str], *, is_typed: bool) -> dict[str, str]:
    """``configs`` and, of an internal or typed topic, the settings that it always has."""
    return {**configs, **_forced_settings(topic, is_typed=is_typed)}


def _forced_settings(topic: str, *, is_typed: bool) -> Mapping[str, str]:
    if is_typed:
        return {"cleanup.policy": "delete"}
    return {"cleanup.policy": "compact"} if topic in INTERNAL_TOPICS else {}


def _check_broker_values(values: Mapping[str, str]) -> None:
    """Judges what a change sets. What ZooKeeper holds besides may stay, and may be deleted."""
    try:
        refuse_changes_of_security(values)
        for name, value in values.items():
            refuse_unkept_promise(name, value)
        _refuse_fixed(values)
        check_broker_settings(values)
    except ConfigError as error:
        raise KafkaError(ErrorCode.invalid_request, str(error)) from None


def _refuse_fixed(names: Iterable[str]) -> None:
    fixed = sorted(name for name in names if not _is_dynamic(name))
    if fixed:
        raise ConfigError(
            f"Cannot update these configs dynamically: {', '.join(fixed)}; give them to `sparklog start` "
            "with -c, and restart."
        )


def _is_dynamic(name: str) -> bool:
    """Whether the broker's setting may change while it runs; a name that nobody knows is judged later."""
    if name in BROKER_SETTINGS:
        return name in DYNAMIC_BROKER_SETTINGS
    base = without_listener(name)
    return base in KAFKA_DYNAMIC_PROPERTIES or base not in KAFKA_BROKER_PROPERTIES
