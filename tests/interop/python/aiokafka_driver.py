"""Driver of aiokafka: an event loop in a thread of its own, which commands reach from outside."""

import asyncio
import ssl
import sys
import threading
import time

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError
from aiokafka.structs import OffsetAndMetadata
from serving import (
    RefusedError,
    UnsupportedError,
    error_of,
    headers_of,
    key_of,
    serve,
    shown_record,
    value_of,
)

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
TIMEOUT_S = 30
REQUEST_MS = 10_000


def refused(error):
    return error_of(error, KafkaError)


def secured(security):
    """aiokafka's names for a driver's ``security``."""
    context = ssl.create_default_context(cafile=security["ca"])
    if "certificate" in security:
        context.load_cert_chain(security["certificate"])
    given = {
        "security_protocol": security["protocol"],
        "ssl_context": context,
        "sasl_mechanism": security.get("mechanism"),
        "sasl_plain_username": security.get("user"),
        "sasl_plain_password": security.get("password"),
    }
    return {name: value for name, value in given.items() if value is not None}


def check(answer):
    """Raise the first error code in an answer of the admin client, whose rows differ in shape."""
    for rows in (getattr(answer, name, None) for name in ("topic_errors", "topic_error_codes", "resources")):
        for row in rows or ():
            code = next(field for field in row if isinstance(field, int))
            if code:
                raise RefusedError(code, str(row))
    return answer


class Listener(ConsumerRebalanceListener):
    def __init__(self, member):
        self._member = member

    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        self._member.rebalances += 1


class GroupMember:
    def __init__(self):
        self.records, self.errors, self.rebalances = [], [], 0

    async def start(self, settings, topics, pattern):
        self.consumer = AIOKafkaConsumer(**settings)
        self.consumer.subscribe(topics=topics or (), pattern=pattern, listener=Listener(self))
        self._task = asyncio.create_task(self._run())

    async def _run(self):
        await self.consumer.start()
        while True:
            try:
                for part, records in (await self.consumer.getmany(timeout_ms=100)).items():
                    for record in records:
                        value = (record.value or b"").decode()
                        self.records.append([part.topic, part.partition, record.offset, value])
            except KafkaError as error:
                self.errors.append(f"{type(error).__name__}: {error}")
                await asyncio.sleep(0.1)

    async def state(self):
        return {
            "assignment": sorted([part.topic, part.partition] for part in self.consumer.assignment()),
            "records": list(self.records),
            "errors": list(self.errors),
            "rebalances": self.rebalances,
        }

    async def leave(self):
        self._task.cancel()
        await self.consumer.stop()


class Driver:
    def __init__(self, servers):
        self._base = {"bootstrap_servers": servers, "retry_backoff_ms": 50}
        self._members, self._producers, self._the_admin = {}, {}, None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def connect(self, servers, security):
        self._base = {"bootstrap_servers": servers, "retry_backoff_ms": 50, **secured(security)}
        self._the_admin = None

    def _await(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(TIMEOUT_S)

    def hello(self):
        return f"aiokafka {aiokafka.__version__}"

    # Records

    def produce(self, topic, records, acks="all", codec="none", idempotent=False, pace_ms=0, linger_ms=5):
        async def produce():
            producer = AIOKafkaProducer(
                **self._base,
                acks=acks if acks == "all" else int(acks),
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
                linger_ms=linger_ms,
                request_timeout_ms=REQUEST_MS,
            )
            await producer.start()
            try:
                futures = []
                for record in records:
                    futures.append(
                        await producer.send(
                            topic,
                            value_of(record),
                            key_of(record),
                            partition=record.get("partition"),
                            timestamp_ms=record.get("timestamp"),
                            headers=headers_of(record),
                        )
                    )
                    await asyncio.sleep(pace_ms / 1000)
                return [await future for future in futures]
            finally:
                await producer.stop()

        done = self._await(produce())
        return [[-1, -1] if one is None else [one.partition, one.offset] for one in done]

    def read(
        self,
        topic,
        partition,
        start,
        count,
        timeout_ms=10_000,
        fetch_bytes=None,
        reset="error",
        committed=False,
    ):
        limits = (
            {"max_partition_fetch_bytes": fetch_bytes, "fetch_max_bytes": fetch_bytes} if fetch_bytes else {}
        )
        part = TopicPartition(topic, partition)

        async def read():
            consumer = AIOKafkaConsumer(
                **self._base,
                **limits,
                isolation_level="read_committed" if committed else "read_uncommitted",
                enable_auto_commit=False,
                auto_offset_reset={"error": "none"}.get(reset, reset),
            )
            await consumer.start()
            try:
                consumer.assign([part])
                if start == "earliest":
                    await consumer.seek_to_beginning(part)
                elif start == "latest":
                    await consumer.seek_to_end(part)
                elif isinstance(start, dict):
                    consumer.seek(
                        part, (await consumer.offsets_for_times({part: start["time"]}))[part].offset
                    )
                else:
                    consumer.seek(part, start)
                found, deadline = [], time.monotonic() + timeout_ms / 1000
                while len(found) < count and time.monotonic() < deadline:
                    found += map(shown_record, (await consumer.getmany(part, timeout_ms=100)).get(part, ()))
                return found[:count]
            finally:
                await consumer.stop()

        return self._await(read())

    def offsets(self, topic, partition, times=()):
        part = TopicPartition(topic, partition)

        async def ask():
            consumer = AIOKafkaConsumer(**self._base)
            await consumer.start()
            try:
                found = [(await consumer.offsets_for_times({part: time}))[part] for time in times]
                return {
                    "earliest": (await consumer.beginning_offsets([part]))[part],
                    "latest": (await consumer.end_offsets([part]))[part],
                    "times": [-1 if one is None else one.offset for one in found],
                }
            finally:
                await consumer.stop()

        return self._await(ask())

    # Transactions

    def txn_init(self, producer, transactional_id, timeout_ms=60_000):
        async def begin():
            one = AIOKafkaProducer(
                **self._base,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                linger_ms=5,
                request_timeout_ms=REQUEST_MS,
            )
            self._producers[producer] = one
            await one.start()

        self._await(begin())

    def txn_begin(self, producer):
        self._await(self._producers[producer].begin_transaction())

    def txn_send(self, producer, topic, records):
        async def send():
            one = self._producers[producer]
            sent = [
                await one.send(topic, value_of(record), key_of(record), partition=record.get("partition"))
                for record in records
            ]
            return [await future for future in sent]

        return [[found.partition, found.offset] for found in self._await(send())]

    def txn_offsets(self, producer, member, group, offsets):
        wanted = {TopicPartition(t, p): OffsetAndMetadata(offset, "") for t, p, offset in offsets}
        self._await(self._producers[producer].send_offsets_to_transaction(wanted, group))

    def txn_end(self, producer, commit):
        one = self._producers[producer]
        self._await(one.commit_transaction() if commit else one.abort_transaction())

    def txn_close(self, producer):
        self._await(self._producers.pop(producer).stop())

    # Groups

    def join(
        self,
        member,
        group,
        topics=None,
        pattern=None,
        assignor="range",
        instance=None,
        session_ms=6000,
        client="interop",
    ):
        if assignor not in ASSIGNORS:
            raise UnsupportedError(f"aiokafka has no {assignor} assignor")
        settings = {
            **self._base,
            "group_id": group,
            "group_instance_id": instance,
            "client_id": client,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
            "session_timeout_ms": session_ms,
            "heartbeat_interval_ms": session_ms // 6,
            "rebalance_timeout_ms": session_ms,
            "partition_assignment_strategy": [ASSIGNORS[assignor]],
            "metadata_max_age_ms": 500,
        }
        self._members[member] = GroupMember()
        self._await(self._members[member].start(settings, topics, pattern))

    def state(self, member):
        return self._await(self._members[member].state())

    def commit(self, member, offsets):
        wanted = {TopicPartition(t, p): OffsetAndMetadata(offset, text) for t, p, offset, text in offsets}
        self._await(self._members[member].consumer.commit(wanted))

    def committed(self, member, partitions):
        coordinator = self._members[member].consumer._coordinator  # committed() leaves out the metadata
        found = self._await(
            coordinator.fetch_committed_offsets([TopicPartition(t, p) for t, p in partitions])
        )
        by_part = {(part.topic, part.partition): value for part, value in found.items()}
        none = OffsetAndMetadata(-1, "")
        return [
            [t, p, by_part.get((t, p), none).offset, by_part.get((t, p), none).metadata]
            for t, p in partitions
        ]

    def leave(self, member):
        self._await(self._members.pop(member).leave())

    # Administration

    @property
    def _admin(self):
        if self._the_admin is None:

            async def start():
                admin = AIOKafkaAdminClient(**self._base)
                await admin.start()
                return admin

            self._the_admin = self._await(start())
        return self._the_admin

    def create_topic(self, topic, partitions, replicas=3, configs=None):
        new = NewTopic(topic, partitions, replicas, topic_configs=configs or {})
        check(self._await(self._admin.create_topics([new])))

    def delete_topic(self, topic):
        check(self._await(self._admin.delete_topics([topic])))

    def add_partitions(self, topic, total):
        check(self._await(self._admin.create_partitions({topic: NewPartitions(total)})))

    def topics(self):
        found = self._await(self._admin.describe_topics())
        return {one["topic"]: len(one["partitions"]) for one in found}

    def configs(self, topic):
        found = self._await(self._admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)]))
        return {entry[0]: entry[1] for entry in check(found[0]).resources[0][4]}

    def set_config(self, topic, name, value):
        wanted = ConfigResource(ConfigResourceType.TOPIC, topic, configs={name: value})
        for answer in self._await(self._admin.alter_configs([wanted])):
            check(answer)

    def delete_records(self, topic, partition, offset):
        part = TopicPartition(topic, partition)
        return self._await(self._admin.delete_records({part: RecordsToDelete(offset)}))[part]

    def cluster(self):
        found = self._await(self._admin.describe_cluster())
        return {
            "id": found["cluster_id"],
            "controller": found["controller_id"],
            "brokers": sorted(node["node_id"] for node in found["brokers"]),
        }

    def groups(self):
        return sorted(found[0] for found in self._await(self._admin.list_consumer_groups()))

    def describe_group(self, group):
        code, _, state, _, assignor, members, *_ = self._await(self._admin.describe_consumer_groups([group]))[
            0
        ].groups[0]
        if code:
            raise RefusedError(code)
        from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

        def parts(data):
            if not data:
                return []
            return sorted(
                [t, p] for t, ps in ConsumerProtocolMemberAssignment.decode(data).assignment for p in ps
            )

        return {
            "state": state,
            "assignor": assignor,
            "members": [
                {"client": one[-4], "host": one[-3], "instance": None, "assignment": parts(one[-1])}
                for one in members
            ],
        }

    def delete_group(self, group):
        raise UnsupportedError("aiokafka cannot delete groups")

    def set_group_offsets(self, group, offsets):
        """As its users do: a consumer that is assigned the partitions commits, outside of any generation."""
        wanted = {TopicPartition(t, p): offset for t, p, offset in offsets}

        async def commit():
            consumer = AIOKafkaConsumer(**self._base, group_id=group, enable_auto_commit=False)
            consumer.assign(list(wanted))
            await consumer.start()
            try:
                await consumer.commit(wanted)
            finally:
                await consumer.stop()

        self._await(commit())

    def group_offsets(self, group):
        found = self._await(self._admin.list_consumer_group_offsets(group))
        return sorted([part.topic, part.partition, value.offset] for part, value in found.items())


if __name__ == "__main__":
    serve(Driver(sys.argv[1]), refused)
