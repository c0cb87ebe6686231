"""Driver of confluent-kafka, which is librdkafka."""

import sys
import time

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)
from serving import Member, RefusedError, UnsupportedError, headers_of, key_of, serve, shown, value_of

TIMEOUT_S = 20.0
QUIET = {"log_level": 0, "retry.backoff.ms": 50, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}


NOT_LET_IN = ("_AUTHENTICATION", "_SSL")
"""What librdkafka calls refused logins and certificates. It tells of them by a callback, and tries again."""


def secured(security):
    """librdkafka's names for a driver's ``security``."""
    given = {
        "security.protocol": security["protocol"].lower(),
        "ssl.ca.location": security["ca"],
        "ssl.certificate.location": security.get("certificate"),
        "ssl.key.location": security.get("certificate"),
        "sasl.mechanism": security.get("mechanism"),
        "sasl.username": security.get("user"),
        "sasl.password": security.get("password"),
    }
    return {name: value for name, value in given.items() if value is not None}


def code_of(error):
    return error.code() if error.code() > 0 else error.name()


def refused(error):
    if isinstance(error, KafkaException):
        return code_of(error.args[0])
    return None


def read_message(message):
    return shown(message.offset(), message.timestamp()[1], message.key(), message.value(), message.headers())


class GroupMember(Member):
    def __init__(self, settings, topics):
        super().__init__()
        self._consumer, self._topics = Consumer(settings), topics

    def begin(self):
        self._consumer.subscribe(self._topics, on_assign=self._on_assign)

    def _on_assign(self, consumer, partitions):
        self.rebalances += 1

    def poll(self):
        for message in self._consumer.consume(100, timeout=0.1):
            if message.error() is not None:
                self.errors.append(f"{message.error().name()}: {message.error().str()}")
            else:
                self.records.append(
                    [
                        message.topic(),
                        message.partition(),
                        message.offset(),
                        (message.value() or b"").decode(),
                    ]
                )

    def assignment(self):
        return [[part.topic, part.partition] for part in self._consumer.assignment()]

    def commit(self, offsets):
        parts = [TopicPartition(t, p, offset, metadata) for t, p, offset, metadata in offsets]
        for part in self._consumer.commit(offsets=parts, asynchronous=False):
            if part.error is not None:
                raise RefusedError(code_of(part.error), part.error.str())

    def committed(self, partitions):
        found = self._consumer.committed([TopicPartition(t, p) for t, p in partitions], timeout=TIMEOUT_S)
        return [[p.topic, p.partition, max(p.offset, -1), p.metadata or ""] for p in found]

    def metadata(self):
        return self._consumer.consumer_group_metadata()

    def close(self):
        self._consumer.close()


class Driver:
    def __init__(self, servers):
        self._base = {"bootstrap.servers": servers, **QUIET}
        self._the_admin = None
        self._errors = []
        self._members = {}
        self._producers = {}

    def connect(self, servers, security):
        self._base = {"bootstrap.servers": servers, **QUIET, **secured(security)}
        self._the_admin = None

    @property
    def _admin(self):
        if self._the_admin is None:
            self._errors = errors = []
            self._the_admin = AdminClient({**self._base, "error_cb": errors.append})
        return self._the_admin

    def hello(self):
        return f"librdkafka {confluent_kafka.libversion()[0]}"

    # Records

    def produce(self, topic, records, acks="all", codec="none", idempotent=False, pace_ms=0, linger_ms=5):
        producer = Producer(
            {
                **self._base,
                "acks": acks,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "linger.ms": linger_ms,
                "message.timeout.ms": 30000,
                "error_cb": lambda error: None,
            }
        )
        return self._send(producer, topic, records, pace_ms)

    @staticmethod
    def _send(producer, topic, records, pace_ms=0):
        results = [None] * len(records)

        def delivered(number, error, message):
            results[number] = error or [message.partition(), message.offset()]

        for number, record in enumerate(records):
            producer.produce(
                topic,
                value_of(record),
                key_of(record),
                partition=record.get("partition", -1),
                timestamp=record.get("timestamp", 0),
                headers=headers_of(record) or None,
                on_delivery=lambda error, message, number=number: delivered(number, error, message),
            )
            producer.poll(pace_ms / 1000)
        producer.flush(TIMEOUT_S * 2)
        for result in results:
            if not isinstance(result, list):
                raise RefusedError("no answer" if result is None else code_of(result), str(result))
        return results

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
        settings = {
            **self._base,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": reset,
        }
        settings["fetch.wait.max.ms"] = 500
        if fetch_bytes:
            settings |= {"max.partition.fetch.bytes": fetch_bytes}
        consumer = Consumer(settings)
        try:
            part = TopicPartition(topic, partition)
            if isinstance(start, dict):
                part.offset = start["time"]
                part = consumer.offsets_for_times([part], timeout=TIMEOUT_S)[0]
            else:
                names = {"earliest": confluent_kafka.OFFSET_BEGINNING, "latest": confluent_kafka.OFFSET_END}
                part.offset = names.get(start, start)
            consumer.assign([part])
            found, deadline = [], time.monotonic() + timeout_ms / 1000
            while len(found) < count and time.monotonic() < deadline:
                message = consumer.poll(0.1)
                if message is not None and message.error() is not None:
                    raise RefusedError(code_of(message.error()), message.error().str())
                if message is not None:
                    found.append(read_message(message))
            return found
        finally:
            consumer.close()

    def offsets(self, topic, partition, times=()):
        consumer = Consumer({**self._base, "group.id": "reader"})
        try:
            part = TopicPartition(topic, partition)
            low, high = consumer.get_watermark_offsets(part, timeout=TIMEOUT_S)
            wanted = [TopicPartition(topic, partition, time) for time in times]
            found = [consumer.offsets_for_times([part], timeout=TIMEOUT_S)[0].offset for part in wanted]
            return {"earliest": low, "latest": high, "times": [max(offset, -1) for offset in found]}
        finally:
            consumer.close()

    # Transactions

    def txn_init(self, producer, transactional_id, timeout_ms=60_000):
        self._producers[producer] = Producer(
            {
                **self._base,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "linger.ms": 5,
                "error_cb": lambda error: None,
            }
        )
        self._producers[producer].init_transactions(TIMEOUT_S)

    def txn_begin(self, producer):
        self._producers[producer].begin_transaction()

    def txn_send(self, producer, topic, records):
        return self._send(self._producers[producer], topic, records)

    def txn_offsets(self, producer, member, group, offsets):
        one = self._members[member]
        parts = [TopicPartition(t, p, offset) for t, p, offset in offsets]
        self._producers[producer].send_offsets_to_transaction(parts, one.call(one.metadata), TIMEOUT_S)

    def txn_end(self, producer, commit):
        one = self._producers[producer]
        (one.commit_transaction if commit else one.abort_transaction)(TIMEOUT_S)

    def txn_close(self, producer):
        self._producers.pop(producer).purge()

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
        if assignor == "sticky":
            raise UnsupportedError("librdkafka has no eager sticky assignor")
        settings = {
            **self._base,
            "group.id": group,
            "client.id": client,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": session_ms // 6,
            "partition.assignment.strategy": assignor,
            "topic.metadata.refresh.interval.ms": 500,
            "allow.auto.create.topics": False,
            "error_cb": lambda error: None,
        }
        if instance is not None:
            settings["group.instance.id"] = instance
        self._members[member] = GroupMember(settings, [f"^{pattern}"] if pattern else topics)
        self._members[member].start()

    def state(self, member):
        return self._members[member].call(self._members[member].state)

    def commit(self, member, offsets):
        one = self._members[member]
        return one.call(lambda: one.commit(offsets))

    def committed(self, member, partitions):
        one = self._members[member]
        return one.call(lambda: one.committed(partitions))

    def leave(self, member):
        self._members.pop(member).leave()

    # Administration

    def create_topic(self, topic, partitions, replicas=3, configs=None):
        new = NewTopic(topic, partitions, replicas, config=configs or {})
        self._admin.create_topics([new], operation_timeout=10)[topic].result(TIMEOUT_S)

    def delete_topic(self, topic):
        self._admin.delete_topics([topic], operation_timeout=10)[topic].result(TIMEOUT_S)

    def add_partitions(self, topic, total):
        self._admin.create_partitions([NewPartitions(topic, total)])[topic].result(TIMEOUT_S)

    def topics(self):
        return {name: len(found.partitions) for name, found in self._listed().items()}

    def _listed(self):
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return self._admin.list_topics(timeout=2.0).topics
            except KafkaException:
                self._admin.poll(0)
                for error in self._errors:
                    if error.name() in NOT_LET_IN:
                        raise RefusedError(error.name(), error.str()) from None
                if time.monotonic() > deadline:
                    raise

    def configs(self, topic):
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        found = self._admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        return {name: entry.value for name, entry in found.items()}

    def set_config(self, topic, name, value):
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)

    def delete_records(self, topic, partition, offset):
        part = TopicPartition(topic, partition, offset)
        return self._admin.delete_records([part])[part].result(TIMEOUT_S).low_watermark

    def cluster(self):
        found = self._admin.describe_cluster().result(TIMEOUT_S)
        return {
            "id": found.cluster_id,
            "controller": found.controller.id,
            "brokers": sorted(node.id for node in found.nodes),
        }

    def groups(self):
        return sorted(group.group_id for group in self._admin.list_consumer_groups().result(TIMEOUT_S).valid)

    def describe_group(self, group):
        found = self._admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
        return {
            "state": found.state.name.title().replace("_", ""),
            "assignor": found.partition_assignor,
            "members": [
                {
                    "client": member.client_id,
                    "host": member.host,
                    "instance": member.group_instance_id,
                    "assignment": sorted([p.topic, p.partition] for p in member.assignment.topic_partitions),
                }
                for member in found.members
            ],
        }

    def delete_group(self, group):
        self._admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)

    def group_offsets(self, group):
        wanted = confluent_kafka.ConsumerGroupTopicPartitions(group)
        found = self._admin.list_consumer_group_offsets([wanted])[group].result(TIMEOUT_S)
        return sorted([p.topic, p.partition, p.offset] for p in found.topic_partitions)

    def set_group_offsets(self, group, offsets):
        parts = [TopicPartition(t, p, offset) for t, p, offset in offsets]
        wanted = confluent_kafka.ConsumerGroupTopicPartitions(group, parts)
        found = self._admin.alter_consumer_group_offsets([wanted])[group].result(TIMEOUT_S)
        for part in found.topic_partitions:
            if part.error is not None:
                raise RefusedError(code_of(part.error), part.error.str())


if __name__ == "__main__":
    serve(Driver(sys.argv[1]), refused)
