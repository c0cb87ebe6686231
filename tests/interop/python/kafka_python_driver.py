"""Driver of kafka-python, releases 2.0 and 3.0."""

import ssl
import sys
import time

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from serving import (
    Member,
    RefusedError,
    UnsupportedError,
    error_of,
    headers_of,
    key_of,
    serve,
    shown_record,
    value_of,
)

IS_3 = not kafka.__version__.startswith("2.")
ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
if IS_3:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

    ASSIGNORS["cooperative-sticky"] = CooperativeStickyAssignor
TIMEOUT_S = 20


def refused(error):
    if isinstance(error, ssl.SSLError):
        return type(error).__name__
    return error_of(error, KafkaError)


def secured(security):
    """kafka-python's names for a driver's ``security``."""
    given = {
        "security_protocol": security["protocol"],
        "ssl_cafile": security["ca"],
        "ssl_certfile": security.get("certificate"),
        "ssl_keyfile": security.get("certificate"),
        "sasl_mechanism": security.get("mechanism"),
        "sasl_plain_username": security.get("user"),
        "sasl_plain_password": security.get("password"),
    }
    return {name: value for name, value in given.items() if value is not None}


def check(code, message=""):
    if code:
        raise RefusedError(code, str(message))


def only_3(what):
    if not IS_3:
        raise UnsupportedError(f"kafka-python 2.0.2 has no {what}")


POLL_MS = 500 if IS_3 else 100
"""Release 3.0 forgets a join whose poll times out in the middle, if new metadata caused the join, and the
member then stands without partitions for ever. So its polls last well above a join's round trips.
"""


class GroupMember(Member):
    def __init__(self, settings, topics, pattern):
        super().__init__()
        self._settings, self._topics, self._pattern = settings, topics, pattern

    def begin(self):
        self._consumer = KafkaConsumer(**self._settings)
        member = self

        class Listener(kafka.ConsumerRebalanceListener):
            def on_partitions_revoked(self, revoked):
                pass

            def on_partitions_assigned(self, assigned):
                member.rebalances += 1

        self._consumer.subscribe(topics=self._topics or (), pattern=self._pattern, listener=Listener())
        self._know_partitions()

    def _know_partitions(self):
        """Wait for the topics' metadata, so that they cause no second join at once; 20 s at most."""
        deadline = time.monotonic() + TIMEOUT_S
        while any(self._consumer.partitions_for_topic(topic) is None for topic in self._topics or ()):
            if time.monotonic() > deadline:
                return
            time.sleep(0.05)

    def poll(self):
        for part, records in self._consumer.poll(timeout_ms=POLL_MS).items():
            for record in records:
                self.records.append(
                    [part.topic, part.partition, record.offset, (record.value or b"").decode()]
                )

    def assignment(self):
        return [[part.topic, part.partition] for part in self._consumer.assignment()]

    def commit(self, offsets):
        extra = (-1,) if IS_3 else ()
        self._consumer.commit(
            {TopicPartition(t, p): OffsetAndMetadata(offset, text, *extra) for t, p, offset, text in offsets}
        )

    def committed(self, partitions):
        found = []
        for t, p in partitions:
            value = self._consumer.committed(TopicPartition(t, p), metadata=True)
            found.append([t, p, -1, ""] if value is None else [t, p, value.offset, value.metadata])
        return found

    def metadata(self):
        return self._consumer.group_metadata()

    def close(self):
        self._consumer.close(autocommit=False)


class Driver:
    def __init__(self, servers):
        self._base = {"bootstrap_servers": servers.split(","), "retry_backoff_ms": 50}
        self._members, self._producers = {}, {}
        self._the_admin = None

    def connect(self, servers, security):
        self._base = {
            "bootstrap_servers": servers.split(","),
            "retry_backoff_ms": 50,
            **({"bootstrap_timeout_ms": 2_000} if IS_3 else {}),  # a refused login is tried again so long
            **secured(security),
        }
        self._the_admin = None

    @property
    def _admin(self):
        if self._the_admin is None:
            self._the_admin = KafkaAdminClient(**self._base)
        return self._the_admin

    def hello(self):
        return f"kafka-python {kafka.__version__}"

    # Records

    def produce(self, topic, records, acks="all", codec="none", idempotent=False, pace_ms=0, linger_ms=5):
        settings = {"linger_ms": linger_ms, "retries": 1000, "max_block_ms": 5_000}
        if IS_3:
            settings["enable_idempotence"] = idempotent
        elif idempotent:
            only_3("idempotent producer")
        if any(value is None for record in records for _, value in headers_of(record)):
            raise UnsupportedError("kafka-python sends no header without a value")
        producer = KafkaProducer(
            **self._base,
            **settings,
            acks=acks if acks == "all" else int(acks),
            compression_type=None if codec == "none" else codec,
        )
        try:
            futures = []
            for record in records:
                futures.append(
                    self._send(
                        producer,
                        topic,
                        value_of(record),
                        key_of(record),
                        partition=record.get("partition"),
                        timestamp_ms=record.get("timestamp"),
                        headers=headers_of(record),
                    )
                )
                time.sleep(pace_ms / 1000)
            producer.flush(TIMEOUT_S * 2)
            done = [future.get(TIMEOUT_S) for future in futures]
            return [[record.partition, record.offset] for record in done]
        finally:
            producer.close(timeout=5)

    @staticmethod
    def _send(producer, topic, *fields, **options):
        try:
            return producer.send(topic, *fields, **options)
        except ValueError as error:  # a name that no topic may have
            raise RefusedError("ValueError", str(error)) from error

    def _consumer(self, **settings):
        return KafkaConsumer(**self._base, enable_auto_commit=False, **settings)

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
        if committed:
            only_3("committed readers")
            limits["isolation_level"] = "read_committed"
        consumer = self._consumer(auto_offset_reset={"error": "none"}.get(reset, reset), **limits)
        try:
            part = TopicPartition(topic, partition)
            consumer.assign([part])
            if start == "earliest":
                consumer.seek_to_beginning(part)
            elif start == "latest":
                consumer.seek_to_end(part)
            elif isinstance(start, dict):
                consumer.seek(part, consumer.offsets_for_times({part: start["time"]})[part].offset)
            else:
                consumer.seek(part, start)
            consumer.position(part)
            found, deadline = [], time.monotonic() + timeout_ms / 1000
            while len(found) < count and time.monotonic() < deadline:
                found += map(shown_record, consumer.poll(timeout_ms=100).get(part, ()))
            return found[:count]
        finally:
            consumer.close()

    def offsets(self, topic, partition, times=()):
        consumer, part = self._consumer(), TopicPartition(topic, partition)
        try:
            found = [consumer.offsets_for_times({part: time})[part] for time in times]
            return {
                "earliest": consumer.beginning_offsets([part])[part],
                "latest": consumer.end_offsets([part])[part],
                "times": [-1 if one is None else one.offset for one in found],
            }
        finally:
            consumer.close()

    # Transactions

    def txn_init(self, producer, transactional_id, timeout_ms=60_000):
        only_3("transactions")
        self._producers[producer] = KafkaProducer(
            **self._base,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=5,
            max_block_ms=TIMEOUT_S * 1_000,
        )
        self._producers[producer].init_transactions()

    def txn_begin(self, producer):
        self._producers[producer].begin_transaction()

    def txn_send(self, producer, topic, records):
        one = self._producers[producer]
        sent = [
            one.send(topic, value_of(record), key_of(record), partition=record.get("partition"))
            for record in records
        ]
        one.flush(TIMEOUT_S)
        return [[found.partition, found.offset] for found in (future.get(TIMEOUT_S) for future in sent)]

    def txn_offsets(self, producer, member, group, offsets):
        one = self._members[member]
        wanted = {TopicPartition(t, p): OffsetAndMetadata(offset, "", -1) for t, p, offset in offsets}
        self._producers[producer].send_offsets_to_transaction(wanted, one.call(one.metadata))

    def txn_end(self, producer, commit):
        one = self._producers[producer]
        (one.commit_transaction if commit else one.abort_transaction)()

    def txn_close(self, producer):
        self._producers.pop(producer).close(timeout=1)

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
            only_3(f"{assignor} assignor")
        settings = {
            **self._base,
            "group_id": group,
            "client_id": client,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            **({"isolation_level": "read_committed"} if IS_3 else {}),
            "session_timeout_ms": session_ms,
            "heartbeat_interval_ms": session_ms // 6,
            "partition_assignment_strategy": [ASSIGNORS[assignor]],
            "metadata_max_age_ms": 500,
        }
        if instance is not None:
            only_3("static members")
            settings["group_instance_id"] = instance
        self._members[member] = GroupMember(settings, topics, pattern)
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
        self._admin.create_topics([NewTopic(topic, partitions, replicas, topic_configs=configs or {})])

    def delete_topic(self, topic):
        self._admin.delete_topics([topic])

    def add_partitions(self, topic, total):
        self._admin.create_partitions({topic: NewPartitions(total)})

    def topics(self):
        if IS_3:
            return {found["name"]: len(found["partitions"]) for found in self._admin.describe_topics()}
        return {found["topic"]: len(found["partitions"]) for found in self._admin.describe_topics()}

    def configs(self, topic):
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        if IS_3:
            found = self._admin.describe_configs([resource], config_filter="all")
            return {name: entry["value"] for name, entry in found["topic"][topic].items()}
        return {
            entry[1 - 1]: entry[1] for entry in self._admin.describe_configs([resource])[0].resources[0][4]
        }

    def set_config(self, topic, name, value):
        self._admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs={name: value})])

    def delete_records(self, topic, partition, offset):
        only_3("DeleteRecords")
        part = TopicPartition(topic, partition)
        found = self._admin.delete_records({part: offset})[part]
        return found["low_watermark"] if isinstance(found, dict) else found

    def cluster(self):
        found = self._admin.describe_cluster()
        return {
            "id": found["cluster_id"],
            "controller": found["controller_id"],
            "brokers": sorted(node.get("node_id", node.get("broker_id")) for node in found["brokers"]),
        }

    def groups(self):
        if IS_3:
            return sorted(found["group_id"] for found in self._admin.list_groups())
        return sorted(name for name, _ in self._admin.list_consumer_groups())

    def describe_group(self, group):
        if not IS_3:
            return self._describe_group_2(group)
        found = self._admin.describe_groups([group])[group]
        return {
            "state": found["group_state"],
            "assignor": found["protocol_data"],
            "members": [
                {
                    "client": member["client_id"],
                    "host": member["client_host"],
                    "instance": member["group_instance_id"],
                    "assignment": self._parts_of(member["member_assignment"]),
                }
                for member in found["members"]
            ],
        }

    @staticmethod
    def _parts_of(assignment):
        if not assignment:
            return []
        return sorted(
            [one["topic"], p] for one in assignment["assigned_partitions"] for p in one["partitions"]
        )

    def _describe_group_2(self, group):
        found = self._admin.describe_consumer_groups([group])[0]
        check(found.error_code)
        return {
            "state": found.state,
            "assignor": found.protocol,
            "members": [
                {
                    "client": member.client_id,
                    "host": member.client_host,
                    "instance": None,
                    "assignment": sorted([t, p] for t, ps in member.member_assignment.assignment for p in ps),
                }
                for member in found.members
            ],
        }

    def delete_group(self, group):
        if not IS_3:
            for _, error in self._admin.delete_consumer_groups([group]):
                check(error.errno)
            return
        for error in self._admin.delete_groups([group]).values():
            if error != "OK":
                check(getattr(kafka.errors, error).errno, error)

    def group_offsets(self, group):
        if IS_3:
            found = self._admin.list_group_offsets({group: None})[group]
        else:
            found = self._admin.list_consumer_group_offsets(group)
        return sorted([part.topic, part.partition, value.offset] for part, value in found.items())

    def set_group_offsets(self, group, offsets):
        only_3("way to set a group's offsets")
        wanted = {TopicPartition(t, p): OffsetAndMetadata(offset, "", -1) for t, p, offset in offsets}
        for error in self._admin.alter_group_offsets(group, wanted).values():
            check(error.errno, error)


if __name__ == "__main__":
    serve(Driver(sys.argv[1]), refused)
