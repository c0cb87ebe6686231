"""A cluster of real sockets and pretended brokers: no replication, no disk, faults on demand.

Brokers share one set of logs in memory. Who leads a partition, what is answered next and which connection is
cut is decided by the test. Loaded by the conftest files of ``tests/client`` and ``tests/cli``.
"""

import threading
import uuid
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sparklog.core.producers.producer_state import Duplicate, ProducerBatch, ProducerStates, RefusedSequence
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import BROKER_RESOURCE
from sparklog.network.acceptor import Listener
from sparklog.network.exchange import Exchange
from sparklog.network.reactor import Reactor
from sparklog.records.envelope import parse_header, stamp
from sparklog.records.payload_kinds import SUPPORTED_PAYLOADS
from sparklog.records.validate import Accepted, check_produced
from sparklog.wire.codec import decode_request, encode_response
from sparklog.wire.messages.admin.create_topics import CreatableTopicResult, CreateTopicsResponse
from sparklog.wire.messages.admin.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from sparklog.wire.messages.admin.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from sparklog.wire.messages.admin.describe_log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult
from sparklog.wire.messages.data.fetch import FetchableTopicResponse, FetchPartitionData, FetchResponse
from sparklog.wire.messages.data.init_producer_id import InitProducerIdResponse
from sparklog.wire.messages.data.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from sparklog.wire.messages.data.produce import (
    ProducePartitionResponse,
    ProduceResponse,
    ProduceTopicResponse,
)
from sparklog.wire.messages.discovery.api_versions import ApiVersion, ApiVersionsResponse
from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportRequest,
    ClusterReportResponse,
    ReportedBroker,
)
from sparklog.wire.messages.discovery.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from sparklog.wire.messages.discovery.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from sparklog.wire.versions import API_VERSIONS, KNOWN_VERSIONS

CLUSTER_ID = "fake-cluster"
DISK_BYTES = 10**10


@dataclass
class FakeLog:
    leader: int
    leader_epoch: int = 0
    log_start_offset: int = 0
    high_watermark: int | None = None
    batches: list[bytes] = field(default_factory=list)
    producers: ProducerStates = field(default_factory=ProducerStates)
    aborted: list[Any] = field(default_factory=list)

    @property
    def end(self) -> int:
        return parse_header(self.batches[-1]).next_offset if self.batches else self.log_start_offset

    @property
    def committed(self) -> int:
        return self.end if self.high_watermark is None else self.high_watermark

    def append(self, batch: bytes, base_offset: int | None = None) -> int:
        """``base_offset`` beyond the end leaves a gap, as compaction does."""
        data = bytearray(batch)
        offset = self.end if base_offset is None else base_offset
        stamp(data, 0, offset, self.leader_epoch)
        self.batches.append(bytes(data))
        return offset


@dataclass
class FakeTopic:
    topic_id: uuid.UUID
    logs: list[FakeLog]
    configs: dict[str, str] = field(default_factory=dict)


class FakeCluster:
    """See the module. ``tls``: of the brokers' listeners, in the clear without it."""

    def __init__(self, broker_count: int = 1, tls: Any = None) -> None:
        self._tls = tls
        self.topics: dict[str, FakeTopic] = {}
        self.refusals: dict[TopicPartition, deque[ErrorCode]] = defaultdict(deque)
        """Codes that the next requests to the leader of a partition get instead of an answer."""
        self.refusal_words: str | None = None
        """What the leader of a partition says with such a code to a produce."""
        self.free_bytes: dict[int, int] = {}
        """Free bytes of a broker's disk of 10 GB; one that is not named has it all."""
        self.cut_before: dict[str, int] = defaultdict(int)
        """How many of the next requests of a kind are met by the end of their connection, unread."""
        self.cut_after: dict[str, int] = defaultdict(int)
        """The same, but the request has done its work: only the answer is lost."""
        self.controller_refusals: deque[ErrorCode] = deque()
        self.requests: list[tuple[int, Any]] = []
        self.parked = threading.Event()
        self.parked.set()
        """Cleared: produces wait, unanswered, until it is set again."""
        self.hidden_topics: set[str] = set()
        self.hidden_brokers: set[int] = set()
        """Brokers that metadata leaves out."""
        self.closest = -1
        """The replica to which leaders send readers that name a rack."""
        self._lock = threading.RLock()
        self._next_producer_id = 1_000
        self._reactors: dict[int, Reactor] = {}
        self._ports: dict[int, int] = {}
        for broker_id in range(1, broker_count + 1):
            self.start_broker(broker_id)

    # What tests do.

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    def port(self, broker_id: int) -> int:
        return self._ports[broker_id]

    def start_broker(self, broker_id: int) -> None:
        def handle(exchange: Exchange) -> None:
            self._handle(broker_id, exchange)

        listener = Listener("127.0.0.1", self._ports.get(broker_id, 0), tls=self._tls)
        reactor = Reactor([listener], handle, handlers=4, name=f"fake-{broker_id}")
        reactor.start()
        self._reactors[broker_id] = reactor
        self._ports[broker_id] = reactor.ports[0]

    def stop_broker(self, broker_id: int) -> None:
        self._reactors.pop(broker_id).stop()

    def stop(self) -> None:
        self.parked.set()
        for broker_id in list(self._reactors):
            self.stop_broker(broker_id)

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> FakeTopic:
        alive = sorted(self._reactors) or [1]
        logs = [FakeLog(alive[number % len(alive)]) for number in range(partitions)]
        self.topics[name] = FakeTopic(uuid.uuid4(), logs, configs)
        return self.topics[name]

    def log(self, topic: str, partition: int = 0) -> FakeLog:
        return self.topics[topic].logs[partition]

    def lead(self, topic: str, partition: int, leader: int) -> None:
        log = self.log(topic, partition)
        with self._lock:
            log.leader = leader
            log.leader_epoch += 1

    def count(self, request_class: type) -> int:
        return sum(isinstance(body, request_class) for _, body in self.requests)

    # The brokers' side.

    def _handle(self, broker_id: int, exchange: Exchange) -> None:
        request = decode_request(exchange.frame)
        kind = type(request.body).__name__.removesuffix("Request")
        self.requests.append((broker_id, request.body))
        if self._uses_up(self.cut_before, kind):
            exchange.close()
            return
        if kind == "Produce":
            self.parked.wait(10)
        answer: Callable[[int, Any], Any] = getattr(
            self, f"_on_{KNOWN_VERSIONS[request.header.api_key].module}"
        )
        with self._lock:
            response = answer(broker_id, request.body)
        if self._uses_up(self.cut_after, kind):
            exchange.close()
        elif kind == "Produce" and request.body.acks == 0:
            exchange.no_reply()
        else:
            header = request.header
            exchange.reply(encode_response(response, header.api_version, header.correlation_id))

    def _uses_up(self, counts: dict[str, int], kind: str) -> bool:
        with self._lock:
            counts[kind] -= 1
            if counts[kind] >= 0:
                return True
            counts[kind] = 0
            return False

    def _leads(self, broker_id: int, tp: TopicPartition, epoch: int = -1) -> FakeLog | ErrorCode:
        topic = self.topics.get(tp.topic)
        if topic is None or not 0 <= tp.partition < len(topic.logs):
            return ErrorCode.unknown_topic_or_partition
        if self.refusals[tp]:
            return self.refusals[tp].popleft()
        log = topic.logs[tp.partition]
        if log.leader != broker_id:
            return ErrorCode.not_leader_or_follower
        if -1 < epoch < log.leader_epoch:
            return ErrorCode.fenced_leader_epoch
        return log

    def _on_api_versions(self, _broker_id: int, _body: Any) -> ApiVersionsResponse:
        keys = [
            ApiVersion(api_key=key, min_version=api.min, max_version=api.max)
            for key, api in API_VERSIONS.items()
        ]
        return ApiVersionsResponse(api_keys=keys, own_apis=[ClusterReportRequest.API_KEY, 0, 0])

    def _on_metadata(self, _broker_id: int, body: Any) -> MetadataResponse:
        names = list(self.topics) if body.topics is None else [topic.name for topic in body.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=broker_id, host="127.0.0.1", port=self._ports[broker_id])
                for broker_id in sorted(self._reactors.keys() - self.hidden_brokers)
            ],
            cluster_id=CLUSTER_ID,
            controller_id=min(self._reactors, default=-1),
            topics=[self._topic_metadata(name) for name in names],
        )

    def _topic_metadata(self, name: str) -> MetadataResponseTopic:
        topic = self.topics.get(name)
        if topic is None or name in self.hidden_topics:
            self.hidden_topics.discard(name)
            return MetadataResponseTopic(name=name, error_code=ErrorCode.unknown_topic_or_partition)
        return MetadataResponseTopic(
            name=name,
            topic_id=topic.topic_id,
            is_internal=name.startswith("__"),
            partitions=[
                MetadataResponsePartition(
                    partition_index=number,
                    leader_id=log.leader,
                    leader_epoch=log.leader_epoch,
                    replica_nodes=sorted({log.leader, 1}),
                    isr_nodes=[log.leader],
                )
                for number, log in enumerate(topic.logs)
            ],
        )

    def _on_describe_cluster(self, _broker_id: int, _body: Any) -> DescribeClusterResponse:
        return DescribeClusterResponse(
            cluster_id=CLUSTER_ID,
            controller_id=min(self._reactors),
            brokers=[
                DescribeClusterBroker(broker_id=broker_id, host="127.0.0.1", port=self._ports[broker_id])
                for broker_id in sorted(self._reactors)
            ],
        )

    def _on_cluster_report(self, _broker_id: int, _body: Any) -> ClusterReportResponse:
        return ClusterReportResponse(
            brokers=[
                ReportedBroker(
                    broker_id=broker_id, host="127.0.0.1", port=self._ports[broker_id], state="serving"
                )
                for broker_id in sorted(self._reactors)
            ]
        )

    def _on_init_producer_id(self, _broker_id: int, _body: Any) -> InitProducerIdResponse:
        if self.controller_refusals:
            return InitProducerIdResponse(error_code=self.controller_refusals.popleft())
        self._next_producer_id += 1
        return InitProducerIdResponse(producer_id=self._next_producer_id, producer_epoch=0)

    def _on_create_topics(self, _broker_id: int, body: Any) -> CreateTopicsResponse:
        results = []
        refusal = self.controller_refusals.popleft() if self.controller_refusals else None
        for topic in body.topics:
            code = refusal or (
                ErrorCode.topic_already_exists if topic.name in self.topics else ErrorCode.none
            )
            result = CreatableTopicResult(name=topic.name, error_code=code)
            if code is ErrorCode.none:
                configs = {config.name: config.value for config in topic.configs}
                result.topic_id = self.create_topic(
                    topic.name, max(1, topic.num_partitions), **configs
                ).topic_id
            else:
                result.error_message = f"Topic '{topic.name}': {code.name}."
            results.append(result)
        return CreateTopicsResponse(topics=results)

    def _on_delete_topics(self, _broker_id: int, body: Any) -> DeleteTopicsResponse:
        results = []
        for name in [*body.topic_names, *(topic.name for topic in body.topics)]:
            known = self.topics.pop(name, None)
            code = ErrorCode.none if known else ErrorCode.unknown_topic_or_partition
            results.append(DeletableTopicResult(name=name, error_code=code))
        return DeleteTopicsResponse(responses=results)

    def _on_describe_configs(self, _broker_id: int, body: Any) -> DescribeConfigsResponse:
        results = []
        for resource in body.resources:
            if resource.resource_type == BROKER_RESOURCE:
                floor = DescribeConfigsResourceResult(
                    name="log.dirs.free.min.bytes", value="-1", config_source=5
                )
                results.append(
                    DescribeConfigsResult(
                        resource_type=BROKER_RESOURCE, resource_name=resource.resource_name, configs=[floor]
                    )
                )
                continue
            own = self.topics[resource.resource_name].configs
            entries = [DescribeConfigsResourceResult(name="segment.ms", value="604800000", config_source=5)]
            entries += [
                DescribeConfigsResourceResult(name=k, value=v, config_source=1) for k, v in own.items()
            ]
            results.append(
                DescribeConfigsResult(resource_type=2, resource_name=resource.resource_name, configs=entries)
            )
        return DescribeConfigsResponse(results=results)

    def _on_describe_log_dirs(self, broker_id: int, _body: Any) -> DescribeLogDirsResponse:
        result = DescribeLogDirsResult(
            log_dir=f"/disk-of-{broker_id}",
            total_bytes=DISK_BYTES,
            usable_bytes=self.free_bytes.get(broker_id, DISK_BYTES),
        )
        return DescribeLogDirsResponse(results=[result])

    def _on_list_offsets(self, broker_id: int, body: Any) -> ListOffsetsResponse:
        topics = []
        for topic in body.topics:
            answers = []
            for asked in topic.partitions:
                log = self._leads(broker_id, TopicPartition(topic.name, asked.partition_index))
                answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
                if isinstance(log, ErrorCode):
                    answer.error_code = log
                else:
                    answer.offset, answer.timestamp = self._offset_for(log, asked.timestamp, body.replica_id)
                answers.append(answer)
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        return ListOffsetsResponse(topics=topics)

    def _offset_for(self, log: FakeLog, timestamp: int, replica_id: int) -> tuple[int, int]:
        if timestamp in (-2, -4):
            return log.log_start_offset, -1
        if timestamp == -1:
            return (log.end if replica_id == -2 else log.committed), -1
        for batch in log.batches:
            header = parse_header(batch)
            if header.base_timestamp_ms >= timestamp:
                return header.base_offset, header.base_timestamp_ms
        return -1, -1

    def _on_produce(self, broker_id: int, body: Any) -> ProduceResponse:
        topics = []
        for topic in body.topic_data:
            answers = [
                self._produce_one(broker_id, TopicPartition(topic.name, part.index), bytes(part.records))
                for part in topic.partition_data
            ]
            topics.append(ProduceTopicResponse(name=topic.name, partition_responses=answers))
        return ProduceResponse(responses=topics)

    def _produce_one(self, broker_id: int, tp: TopicPartition, batch: bytes) -> ProducePartitionResponse:
        answer = ProducePartitionResponse(index=tp.partition)
        log = self._leads(broker_id, tp)
        if isinstance(log, ErrorCode):
            answer.error_code, answer.error_message = log, self.refusal_words
            return answer
        checked = check_produced(batch, max_batch_bytes=1_048_588, payload_kinds=SUPPORTED_PAYLOADS)
        if not isinstance(checked, Accepted):
            answer.error_code, answer.error_message = checked.error, checked.message
            return answer
        header = parse_header(batch)
        producer = ProducerBatch(
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            first_sequence=header.base_sequence,
            last_sequence=header.last_sequence,
            first_offset=log.end,
            last_offset=log.end + header.last_offset_delta,
            timestamp_ms=header.max_timestamp_ms,
        )
        verdict = log.producers.check(producer) if header.has_producer else None
        if isinstance(verdict, RefusedSequence):
            answer.error_code, answer.error_message = verdict.code, verdict.message
        elif isinstance(verdict, Duplicate):
            answer.base_offset = verdict.base_offset
        else:
            answer.base_offset = log.append(batch)
            if header.has_producer:
                log.producers.apply(producer, now_ms=0)
        return answer

    def _on_fetch(self, broker_id: int, body: Any) -> FetchResponse:
        names = {topic.topic_id: name for name, topic in self.topics.items()}
        responses = []
        for topic in body.topics:
            name = names.get(topic.topic_id)
            answers = [
                FetchPartitionData(partition_index=asked.partition, error_code=ErrorCode.unknown_topic_id)
                if name is None
                else self._fetch_one(broker_id, TopicPartition(name, asked.partition), asked, body.rack_id)
                for asked in topic.partitions
            ]
            responses.append(FetchableTopicResponse(topic_id=topic.topic_id, partitions=answers))
        if not any(answer.records or answer.error_code for r in responses for answer in r.partitions):
            threading.Event().wait(min(body.max_wait_ms, 20) / 1_000)  # a very impatient purgatory
        return FetchResponse(responses=responses)

    def _fetch_one(self, broker_id: int, tp: TopicPartition, asked: Any, rack: str) -> FetchPartitionData:
        serving = self.log(*tp).leader if broker_id == self.closest else broker_id
        log = self._leads(serving, tp, asked.current_leader_epoch)
        if isinstance(log, ErrorCode):
            return FetchPartitionData(partition_index=tp.partition, error_code=log)
        answer = FetchPartitionData(
            partition_index=tp.partition,
            high_watermark=log.committed,
            last_stable_offset=log.committed,
            log_start_offset=log.log_start_offset,
        )
        if not log.log_start_offset <= asked.fetch_offset <= log.end:
            answer.error_code = ErrorCode.offset_out_of_range
            return answer
        if rack and self.closest >= 0 and broker_id == log.leader:
            answer.preferred_read_replica = self.closest
            return answer
        records = b""
        for batch in log.batches:
            header = parse_header(batch)
            is_wanted = asked.fetch_offset <= header.last_offset < log.committed
            if is_wanted and (not records or len(records) + len(batch) <= asked.partition_max_bytes):
                records += batch
        answer.records = (records,) if records else ()
        answer.aborted_transactions = log.aborted or None
        return answer
