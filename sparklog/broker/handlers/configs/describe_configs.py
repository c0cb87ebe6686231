"""DescribeConfigs: settings of topics and brokers, each with the source of its value, and levels of loggers.

A broker answers for itself, and for topics as it serves them. A broker resource without a name stands for the
settings of all brokers.

The columns of a typed topic are read-only settings. If this broker must ask the controller for them first, it
does so on another thread, and leaves them out if no controller answers.
"""

from collections.abc import Iterable, Iterator

from sparklog.broker.call import Call
from sparklog.broker.handlers.configs.broker_loggers import describe_loggers
from sparklog.broker.handlers.configs.described import (
    describe_all_brokers,
    describe_broker,
    describe_schema,
    describe_topic,
)
from sparklog.broker.handlers.configs.levels import BrokerLevels
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import topic_name_problem
from sparklog.model.kafka_numbers import BROKER_LOGGER_RESOURCE, BROKER_RESOURCE, TOPIC_RESOURCE
from sparklog.wire.messages.admin.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)


def handle(call: Call, request: DescribeConfigsRequest) -> None:
    unknown = list(_topics_of_unknown_columns(call, request))
    if not unknown:
        _answer(call, request)
        return

    def ask_first() -> None:
        call.broker.schemas.described(unknown)
        _answer(call, request)

    call.broker.waiting_room.submit(lambda: call.carefully(ask_first))


def _topics_of_unknown_columns(call: Call, request: DescribeConfigsRequest) -> Iterator[str]:
    for resource in request.resources:
        topic = call.broker.metadata.topic(resource.resource_name)
        is_typed = resource.resource_type == TOPIC_RESOURCE and topic is not None and topic.schema_version > 0
        if is_typed and topic is not None and call.broker.schemas.known(topic) is None:
            yield topic.name


def _answer(call: Call, request: DescribeConfigsRequest) -> None:
    call.reply(
        DescribeConfigsResponse(
            results=[_resource(call, request, resource) for resource in request.resources]
        )
    )


def _resource(
    call: Call, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        found = _settings(call, resource.resource_type, resource.resource_name)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message or None
        return result
    wanted = resource.configuration_keys
    result.configs = [one for one in found if not wanted or one.name in wanted]
    for one in result.configs:
        if not request.include_synonyms:
            one.synonyms = []
        if not request.include_documentation:
            one.documentation = None
    return result


def _settings(call: Call, resource_type: int, name: str) -> Iterable[DescribeConfigsResourceResult]:
    """The resource's settings. Raises KafkaError if this broker does not know them."""
    settings = call.broker.settings
    levels = BrokerLevels(settings.at_start, settings.dynamic, call.broker.identity)
    if resource_type == TOPIC_RESOURCE:
        problem = topic_name_problem(name)
        if problem is not None:
            raise KafkaError(ErrorCode.invalid_topic_exception, problem)
        topic = call.broker.metadata.topic(name)
        if topic is None:
            raise KafkaError(ErrorCode.unknown_topic_or_partition)
        schema = call.broker.schemas.known(topic) if topic.schema_version else None
        columns = () if schema is None else describe_schema(schema)
        return [*describe_topic(topic.configs, levels, settings.now), *columns]
    if resource_type == BROKER_LOGGER_RESOURCE:
        check_own_id(call, name)
        return describe_loggers()
    if resource_type != BROKER_RESOURCE:
        message = f"resource type {resource_type} has no settings: ask for topics, brokers or broker loggers"
        raise KafkaError(ErrorCode.invalid_request, message)
    if name == "":
        return describe_all_brokers(levels)
    check_own_id(call, name)
    return describe_broker(levels)


def check_own_id(call: Call, name: str) -> None:
    """Raises KafkaError (INVALID_REQUEST) unless ``name`` is the id of this broker."""
    try:
        is_own = int(name) == call.broker.broker_id
    except ValueError:
        message = f"Broker id must be an integer, but it is: {name}"
        raise KafkaError(ErrorCode.invalid_request, message) from None
    if not is_own:
        message = f"Unexpected broker id, expected {call.broker.broker_id}, but received {name}"
        raise KafkaError(ErrorCode.invalid_request, message)
