"""DescribeConfigs: the settings of topics and brokers, each with the source of its value.

A value is that of the first of these that has one; the others are its *synonyms* (KIP-226):

    1 the topic    2 this broker, set while it runs    3 all brokers, likewise    4 the broker's start
    5 the default

A broker answers for itself, and for topics as it serves them. A broker resource without a name stands for the
settings of all brokers. Kafka's settings without an effect here are shown if they were set.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sparklog.broker.call import Call
from sparklog.model.config import (
    BROKER_SETTINGS,
    DYNAMIC_BROKER_SETTINGS,
    TOPIC_SETTINGS,
    BrokerConfig,
    DynamicConfigs,
)
from sparklog.model.errors import ErrorCode
from sparklog.model.kafka_numbers import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigSource
from sparklog.model.setting import Setting, render
from sparklog.wire.messages.admin.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

TYPE_STRING: Final = 2
CONFIG_TYPES: Final = {"bool": 1, "string": TYPE_STRING, "int": 5, "float": 6, "list": 7}

NOT_ACTED_ON: Final = "Accepted for Kafka's sake; sparklog does not act on it."


def handle(call: Call, request: DescribeConfigsRequest) -> None:
    call.reply(
        DescribeConfigsResponse(
            results=[_resource(call, request, resource) for resource in request.resources]
        )
    )


def _resource(
    call: Call, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    found = _settings(call, resource, result)
    wanted = resource.configuration_keys
    result.configs = [one for one in found if wanted is None or one.name in wanted]
    for one in result.configs:
        if not request.include_synonyms:
            one.synonyms = []
        if not request.include_documentation:
            one.documentation = None
    return result


def _settings(
    call: Call, resource: DescribeConfigsResource, result: DescribeConfigsResult
) -> Iterable[DescribeConfigsResourceResult]:
    """The resource's settings; none, with an error in ``result``, if this broker does not know them."""
    static, dynamic = call.broker.replicas.static_config, call.broker.replicas.dynamic_configs
    if resource.resource_type == TOPIC_RESOURCE:
        topic = call.broker.metadata.topic(resource.resource_name)
        if topic is not None:
            return describe_topic(topic.configs, static, dynamic)
        result.error_code = ErrorCode.unknown_topic_or_partition
        return ()
    if resource.resource_type != BROKER_RESOURCE:
        message = f"resource type {resource.resource_type} has no settings: ask for topics or brokers"
    elif resource.resource_name == "":
        return describe_all_brokers(dynamic)
    elif resource.resource_name == str(call.broker.broker_id):
        return describe_broker(static, dynamic)
    else:
        message = f"broker {resource.resource_name} must be asked itself; this is {call.broker.broker_id}"
    result.error_code, result.error_message = ErrorCode.invalid_request, message
    return ()


def describe_topic(
    overrides: Mapping[str, str], static: BrokerConfig, dynamic: DynamicConfigs
) -> Iterator[DescribeConfigsResourceResult]:
    for name, setting in TOPIC_SETTINGS.items():
        broker_name = setting.broker_name
        levels = _levels(broker_name, static, dynamic) if broker_name else [_default(name, setting)]
        yield _described(setting, [*_own_level(name, overrides), *levels], read_only=False)
    for name in sorted(overrides.keys() - TOPIC_SETTINGS.keys()):
        yield _not_acted_on(name, _own_level(name, overrides))


def describe_broker(static: BrokerConfig, dynamic: DynamicConfigs) -> Iterator[DescribeConfigsResourceResult]:
    for name, setting in BROKER_SETTINGS.items():
        is_fixed = name not in DYNAMIC_BROKER_SETTINGS
        yield _described(setting, _levels(name, static, dynamic), read_only=is_fixed)
    for name in sorted(dynamic.merged.keys() - BROKER_SETTINGS.keys()):
        yield _not_acted_on(name, _dynamic_levels(name, dynamic))


def describe_all_brokers(dynamic: DynamicConfigs) -> Iterator[DescribeConfigsResourceResult]:
    for name in sorted(dynamic.everybodys):
        levels = _dynamic_levels(name, DynamicConfigs({}, dynamic.everybodys))
        setting = BROKER_SETTINGS.get(name)
        yield _described(setting, levels, read_only=False) if setting else _not_acted_on(name, levels)


def _own_level(name: str, overrides: Mapping[str, str]) -> list[DescribeConfigsSynonym]:
    if name not in overrides:
        return []
    return [DescribeConfigsSynonym(name=name, value=overrides[name], source=ConfigSource.TOPIC)]


def _levels(name: str, static: BrokerConfig, dynamic: DynamicConfigs) -> list[DescribeConfigsSynonym]:
    """Every level that has a value for this broker setting; the first level has the value that holds."""
    levels = _dynamic_levels(name, dynamic)
    if name in static.given:
        text = render(static.given[name])
        levels.append(DescribeConfigsSynonym(name=name, value=text, source=ConfigSource.STATIC_BROKER))
    return [*levels, _default(name, BROKER_SETTINGS[name])]


def _dynamic_levels(name: str, dynamic: DynamicConfigs) -> list[DescribeConfigsSynonym]:
    levels = (
        (dynamic.own, ConfigSource.DYNAMIC_BROKER),
        (dynamic.everybodys, ConfigSource.DYNAMIC_DEFAULT_BROKER),
    )
    return [
        DescribeConfigsSynonym(name=name, value=configs[name], source=source)
        for configs, source in levels
        if name in configs
    ]


def _default(name: str, setting: Setting) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=name, value=render(setting.default), source=ConfigSource.DEFAULT)


def _described(
    setting: Setting, levels: list[DescribeConfigsSynonym], *, read_only: bool
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=levels[0].value,
        read_only=read_only,
        is_default=levels[0].source == ConfigSource.DEFAULT,
        config_source=levels[0].source,
        synonyms=levels,
        config_type=CONFIG_TYPES[setting.kind],
        documentation=setting.doc,
    )


def _not_acted_on(name: str, levels: list[DescribeConfigsSynonym]) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name,
        value=levels[0].value,
        config_source=levels[0].source,
        synonyms=levels,
        config_type=TYPE_STRING,
        documentation=NOT_ACTED_ON,
    )
