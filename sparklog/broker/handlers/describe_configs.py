"""DescribeConfigs: settings of topics and brokers, each with where its value comes from."""

from collections.abc import Callable, Mapping

from sparklog.broker.call import Call
from sparklog.model.config import BROKER_SETTINGS, TOPIC_SETTINGS, BrokerConfig, Setting, render
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4

SOURCE_TOPIC = 1
SOURCE_STATIC_BROKER = 4
SOURCE_DEFAULT = 5

CONFIG_TYPES = {"bool": 1, "string": 2, "int": 5, "list": 7}

Described = tuple[str, int]
"""A setting's value as text, and its source."""


def handle(call: Call, request: DescribeConfigsRequest) -> None:
    documented = request.include_documentation
    call.reply(
        DescribeConfigsResponse(
            results=[_resource(call, resource, documented) for resource in request.resources]
        )
    )


def _resource(call: Call, resource: DescribeConfigsResource, documented: bool) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    config = call.broker.config
    if resource.resource_type == TOPIC_RESOURCE:
        topic = call.broker.metadata.topic(resource.resource_name)
        if topic is None:
            result.error_code = ErrorCode.unknown_topic_or_partition
            return result
        overrides = topic.configs
        result.configs = _describe(
            TOPIC_SETTINGS, resource, documented, lambda setting: _topic_value(config, overrides, setting)
        )
    elif resource.resource_type == BROKER_RESOURCE:
        if resource.resource_name not in ("", str(call.broker.broker_id)):
            result.error_code = ErrorCode.invalid_request
            result.error_message = (
                f"broker {resource.resource_name} must be asked itself; this is {call.broker.broker_id}"
            )
            return result
        result.configs = _describe(
            BROKER_SETTINGS, resource, documented, lambda setting: _broker_value(config, setting.name)
        )
    else:
        result.error_code = ErrorCode.invalid_request
        result.error_message = (
            f"resource type {resource.resource_type} has no settings: ask for topics or brokers"
        )
    return result


def _topic_value(config: BrokerConfig, overrides: Mapping[str, str], setting: Setting) -> Described:
    if setting.name in overrides:
        return overrides[setting.name], SOURCE_TOPIC
    return _broker_value(config, setting.broker_name)


def _broker_value(config: BrokerConfig, name: str) -> Described:
    source = SOURCE_STATIC_BROKER if name in config.given else SOURCE_DEFAULT
    return render(config.get(name)), source


def _describe(
    settings: Mapping[str, Setting],
    resource: DescribeConfigsResource,
    documented: bool,
    value_of: Callable[[Setting], Described],
) -> list[DescribeConfigsResourceResult]:
    wanted = resource.configuration_keys
    described: list[DescribeConfigsResourceResult] = []
    for setting in settings.values():
        if wanted is not None and setting.name not in wanted:
            continue
        value, source = value_of(setting)
        described.append(
            DescribeConfigsResourceResult(
                name=setting.name,
                value=value,
                read_only=not setting.broker_name,
                is_default=source == SOURCE_DEFAULT,
                config_source=source,
                config_type=CONFIG_TYPES[setting.kind],
                documentation=setting.doc if documented else None,
            )
        )
    return described
