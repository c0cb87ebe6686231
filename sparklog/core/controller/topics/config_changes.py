"""Changes of the settings of topics and brokers while the cluster runs.

``/config/topics/T``, ``/config/brokers/N`` and ``/config/brokers/<default>`` hold the settings. One multi-op
writes all resources of a request. UpdateMetadata brings the settings to brokers.

``min.insync.replicas`` is different. Whether a replica outside the ISR is eligible follows from the minimum
that *the leader* commits with, so the controller must know at any time which minimum that is. Each
partition's state has the minimum of its leader epoch. A change of the setting makes an election necessary,
which begins a new epoch with the new minimum (``sparklog.core.controller.state.leader_choice``).
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from sparklog.core.controller.commands.config_commands import (
    ALL_BROKERS,
    ChangeConfigs,
    ConfigChange,
    ConfigResult,
    ConfigsResult,
    SettingChange,
)
from sparklog.core.controller.state.image import (
    BrokerConfigsChanged,
    Change,
    ClusterImage,
    TopicConfigsChanged,
)
from sparklog.core.controller.state.write_size import WRITE_BYTES_MAX, bytes_of
from sparklog.core.controller.state.znodes import broker_config_path, encode_configs, topic_config_path
from sparklog.core.controller.steps import ApplyConfigs, Decision
from sparklog.core.controller.topics.config_checks import check_change, check_form, with_forced_settings
from sparklog.core.controller.topics.typed_topics import check_keeps_schema
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.kafka_numbers import BROKER_RESOURCE, TOPIC_RESOURCE
from sparklog.model.schema.schema_settings import SCHEMA_SETTINGS
from sparklog.model.settings.setting import Setting
from sparklog.model.settings.settings_table import BROKER_SETTINGS, TOPIC_SETTINGS
from sparklog.model.zookeeper import ANY_VERSION, Create, Operation, SetData

RESOURCES_MAX: Final = 1_000
"""In one request: they are one write."""


def decide_configs(image: ClusterImage, step: ApplyConfigs) -> Decision | ConfigsResult:
    """What to write, or the answer if there is nothing to write."""
    operations: list[Operation] = []
    changes: list[Change] = []
    results: list[ConfigResult] = []
    if len(step.request.resources) > RESOURCES_MAX:
        return _refuse_all(step, f"a request changes at most {RESOURCES_MAX} resources")
    named = Counter((change.kind, change.name) for change in step.request.resources)
    for change in step.request.resources:
        try:
            if named[change.kind, change.name] > 1:
                raise KafkaError(ErrorCode.invalid_request, "Each resource must appear at most once.")
            check_form(change)
            before, after = _plan(image, change)
        except KafkaError as error:
            results.append(ConfigResult(change.kind, change.name, error.code, error.message))
            continue
        results.append(ConfigResult(change.kind, change.name, configs=after))
        if after != before and not step.request.validate_only:
            operations.append(_write(image, change, after))
            changes.append(_change(change, after))
    result = ConfigsResult(tuple(results))
    if not operations:
        return result
    if bytes_of(operations) > WRITE_BYTES_MAX:
        return _refuse_all(step, "the settings are too large for one write: change them in several requests")
    return Decision(step, tuple(operations), tuple(changes), result)


def _refuse_all(step: ApplyConfigs, message: str) -> ConfigsResult:
    asked = step.request.resources
    return ConfigsResult(
        tuple(ConfigResult(one.kind, one.name, ErrorCode.invalid_request, message) for one in asked)
    )


def _plan(image: ClusterImage, change: ConfigChange) -> tuple[Mapping[str, str], dict[str, str]]:
    """The resource's settings before and after. Raises KafkaError with the reason if they are illegal."""
    if change.kind == TOPIC_RESOURCE:
        return _plan_topic(image, change)
    _check_broker(image, change.name)
    before = image.broker_configs.get(change.name, {})
    after = {} if change.replaces_all else dict(before)
    for one in change.changes:
        _apply(after, one, BROKER_SETTINGS, image, is_topic=False)
    check_change(change, before, after, is_typed=False)
    return before, after


def _plan_topic(image: ClusterImage, change: ConfigChange) -> tuple[Mapping[str, str], dict[str, str]]:
    topic = image.topics.get(change.name)
    if topic is None or image.is_deleting(change.name):
        message = f"The topic '{change.name}' does not exist."
        raise KafkaError(ErrorCode.unknown_topic_or_partition, message)
    check_keeps_schema(topic, change.changes)
    is_typed = topic.node.schema_version > 0
    after = {} if change.replaces_all else dict(topic.configs)
    for one in change.changes:
        if one.name not in SCHEMA_SETTINGS:
            _apply(after, one, TOPIC_SETTINGS, image, is_topic=True)
    check_change(change, topic.configs, after, is_typed=is_typed)
    return topic.configs, with_forced_settings(change.name, after, is_typed=is_typed)


def strangers(image: ClusterImage, request: ChangeConfigs) -> list[str]:
    """Brokers that the request names and the image lacks: they are down, or have never registered."""
    named = (one.name for one in request.resources if one.kind == BROKER_RESOURCE and _is_broker_id(one.name))
    return [name for name in named if not image.has_known(name)]


def _is_broker_id(name: str) -> bool:
    return name.isascii() and name.isdecimal() and name == str(int(name[:10]))


def _check_broker(image: ClusterImage, name: str) -> None:
    if name == ALL_BROKERS:
        return
    if not _is_broker_id(name):
        message = f"Node id must be an integer, but it is: {name}"
        raise KafkaError(ErrorCode.invalid_request, message)
    if not image.has_known(name):
        known = ", ".join(map(str, sorted(image.brokers.keys() | image.registered)))
        message = f"no broker with id {name} has ever registered; there are {known or 'none yet'}"
        raise KafkaError(ErrorCode.broker_id_not_registered, message)


def _apply(
    configs: dict[str, str],
    change: SettingChange,
    known: Mapping[str, Setting],
    image: ClusterImage,
    *,
    is_topic: bool,
) -> None:
    match change.operation:
        case "delete":
            configs.pop(change.name, None)
        case "set":
            configs[change.name] = change.value or ""
        case "append" | "subtract":
            configs[change.name] = _edit_list(configs, change, known, image, is_topic=is_topic)


def _edit_list(
    configs: Mapping[str, str],
    change: SettingChange,
    known: Mapping[str, Setting],
    image: ClusterImage,
    *,
    is_topic: bool,
) -> str:
    setting = known.get(change.name)
    if setting is None or setting.kind != "list":
        message = f"Config value {change.operation} is not allowed for config key: {change.name}"
        raise KafkaError(ErrorCode.invalid_config, message)
    present = configs.get(change.name)
    if present is None:
        inherited = image.config.topic({}).get(setting.name) if is_topic else image.config.get(setting.name)
        present = ",".join(inherited) if isinstance(inherited, tuple) else str(inherited)
    values = [one for one in present.split(",") if one]
    named = [one.strip() for one in (change.value or "").split(",") if one.strip()]
    if change.operation == "append":
        return ",".join([*values, *(one for one in named if one not in values)])
    return ",".join(one for one in values if one not in named)


def _write(image: ClusterImage, change: ConfigChange, after: Mapping[str, str]) -> Operation:
    data = encode_configs(after)
    if change.kind == TOPIC_RESOURCE:
        return SetData(topic_config_path(change.name), data, ANY_VERSION)
    path = broker_config_path(change.name)
    if change.name in image.broker_configs:
        return SetData(path, data, ANY_VERSION)
    return Create(path, data)


def _change(change: ConfigChange, after: dict[str, str]) -> Change:
    if change.kind == TOPIC_RESOURCE:
        return TopicConfigsChanged(change.name, after)
    return BrokerConfigsChanged(change.name, after)
