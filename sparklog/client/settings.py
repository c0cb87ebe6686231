"""Settings of topics and brokers as they are told: each value with its source, and what lies under it.

A topic's are the same at every broker whose own settings are the same, so any is asked. A broker's are known
to itself alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.kafka_numbers import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigSource
from sparklog.wire.messages.admin.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)


@dataclass(frozen=True, slots=True)
class Synonym:
    """What a setting is, or would be, by one of its sources."""

    name: str
    value: str
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class DescribedSetting:
    """One setting; ``synonyms`` begins with what counts."""

    name: str
    value: str
    source: ConfigSource
    read_only: bool = False
    synonyms: tuple[Synonym, ...] = ()

    def without(self, source: ConfigSource) -> Synonym | None:
        """What would count if ``source`` said nothing."""
        return next((one for one in self.synonyms if one.source != source), None)


Settings = dict[str, DescribedSetting]


def describe_topic(cluster: ClusterClient, topic: str) -> Settings:
    """Every setting of a topic; KafkaError if there is no such topic."""
    return _read(topic, cluster.call_any(_request(TOPIC_RESOURCE, topic)))


def describe_broker(cluster: ClusterClient, broker: int) -> Settings:
    """Every setting of a broker, by its own account; KafkaError if nobody knows it."""
    try:
        response = cluster.call_broker(broker, _request(BROKER_RESOURCE, str(broker)))
    except OSError as error:
        raise SparklogError(f"broker {broker} does not tell its settings: {error}; is it alive?") from error
    return _read(str(broker), response)


def describe_all_brokers(cluster: ClusterClient) -> Settings:
    """What was set for all brokers while they run."""
    return _read("", cluster.call_any(_request(BROKER_RESOURCE, "")))


def _request(resource_type: int, name: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=resource_type, resource_name=name)
    return DescribeConfigsRequest(resources=[resource], include_synonyms=True)


def _read(name: str, response: DescribeConfigsResponse) -> Settings:
    (result,) = response.results
    if result.error_code is not ErrorCode.none:
        raise KafkaError(result.error_code, result.error_message or f"{name!r} has no settings to be told")
    return {one.name: _setting(one) for one in result.configs}


def _setting(told: DescribeConfigsResourceResult) -> DescribedSetting:
    synonyms: Sequence[Synonym] = [
        Synonym(one.name, one.value or "", _source(one.source)) for one in told.synonyms
    ]
    return DescribedSetting(
        told.name, told.value or "", _source(told.config_source), told.read_only, tuple(synonyms)
    )


def _source(number: int) -> ConfigSource:
    return ConfigSource(number) if number in set(ConfigSource) else ConfigSource.UNKNOWN
