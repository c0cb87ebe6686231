"""Settings of topics and brokers: each value with its source, and the values that it overrides.

A topic's settings are requested from any broker, because they are equal at all brokers with equal settings of
their own. A broker's settings are requested from that broker, because only it knows them.
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
    """A setting's value by one of its sources."""

    name: str
    value: str
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class DescribedSetting:
    """One setting; the first of ``synonyms`` is in effect."""

    name: str
    value: str
    source: ConfigSource
    read_only: bool = False
    synonyms: tuple[Synonym, ...] = ()

    def without(self, source: ConfigSource) -> Synonym | None:
        """The value that would be in effect without ``source``."""
        return next((one for one in self.synonyms if one.source != source), None)


Settings = dict[str, DescribedSetting]


def describe_topic(cluster: ClusterClient, topic: str) -> Settings:
    """Every setting of a topic; KafkaError if there is no such topic."""
    return _read(topic, cluster.call_any(_request(TOPIC_RESOURCE, topic)))


def describe_broker(cluster: ClusterClient, broker: int, *, timeout_ms: int | None = None) -> Settings:
    """Every setting of a broker, requested from that broker; KafkaError if no such broker is known."""
    try:
        response = cluster.call_broker(broker, _request(BROKER_RESOURCE, str(broker)), timeout_ms=timeout_ms)
    except OSError as error:
        raise SparklogError(f"broker {broker} did not report its settings: {error}; is it alive?") from error
    return _read(str(broker), response)


def describe_all_brokers(cluster: ClusterClient) -> Settings:
    """The dynamic settings of all brokers."""
    return _read("", cluster.call_any(_request(BROKER_RESOURCE, "")))


def _request(resource_type: int, name: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=resource_type, resource_name=name)
    return DescribeConfigsRequest(resources=[resource], include_synonyms=True)


def _read(name: str, response: DescribeConfigsResponse) -> Settings:
    (result,) = response.results
    if result.error_code is not ErrorCode.none:
        raise KafkaError(result.error_code, result.error_message or f"{name!r} reports no settings")
    return {one.name: _setting(one) for one in result.configs}


def _setting(described: DescribeConfigsResourceResult) -> DescribedSetting:
    synonyms: Sequence[Synonym] = [
        Synonym(one.name, one.value or "", _source(one.source)) for one in described.synonyms
    ]
    return DescribedSetting(
        described.name,
        described.value or "",
        _source(described.config_source),
        described.read_only,
        tuple(synonyms),
    )


def _source(number: int) -> ConfigSource:
    return ConfigSource(number) if number in set(ConfigSource) else ConfigSource.UNKNOWN
