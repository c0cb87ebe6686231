"""``sparklog transactions abort``: end an open transaction from outside.

Of a transactional id its coordinator aborts, in all partitions, and its producer is fenced. In one partition
its leader writes the marker, which is meant for a transaction that hangs there: one that a coordinator still
has is refused, because that coordinator would go on with it. With the producer's id and epochs nothing is
checked: for a coordinator that has lost its log.
"""

import argparse
import json
import shlex

from sparklog.cli.command import DONE, UsageError
from sparklog.cli.connect import cluster_words, wants_json
from sparklog.cli.coordinators.transactions.producers import find_partition
from sparklog.cli.coordinators.transactions.transaction_description import find_transactional_id
from sparklog.cli.coordinators.transactions.transaction_listing import NO_TRANSACTION
from sparklog.cli.progress import patience
from sparklog.client.cluster import ClusterClient
from sparklog.client.transactions.hanging import OpenTransaction, coordinated, open_transactions
from sparklog.client.transactions.transaction_admin import TransactionAdmin
from sparklog.core.transaction_coordinator.states import TransactionState
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.ids import TopicPartition

_OF_A_PARTITION = ("partition", "start_offset", "producer_id", "producer_epoch", "coordinator_epoch")
_IDENTITY = ("producer_id", "producer_epoch", "coordinator_epoch")


def check(arguments: argparse.Namespace) -> None:
    """UsageError unless the options name exactly one transaction."""
    of_partition = [name for name in ("topic", *_OF_A_PARTITION) if _is_given(arguments, name)]
    if arguments.transactional_id is not None:
        if of_partition:
            raise UsageError(
                f"{arguments.transactional_id!r} and {_option(of_partition[0])} are both given; give a "
                "transactional id, or a transaction in one partition"
            )
        return
    if arguments.topic is None or arguments.partition is None:
        raise UsageError("which transaction? give a transactional id, or --topic and --partition")
    missing = [name for name in _IDENTITY if not _is_given(arguments, name)]
    if arguments.start_offset is not None:
        if len(missing) < len(_IDENTITY):
            given = next(name for name in _IDENTITY if name not in missing)
            raise UsageError(f"--start-offset and {_option(given)} are both given; give one of them")
    elif len(missing) == len(_IDENTITY):
        raise UsageError(
            f"which transaction in {arguments.topic}-{arguments.partition}? give --start-offset, as "
            "find-hanging shows it"
        )
    elif missing:
        raise UsageError(f"{_option(missing[0])} is missing; it goes together with the other two")


def abort(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    if arguments.transactional_id is not None:
        return _abort_transactional_id(cluster, arguments)
    topic_partition = find_partition(cluster, arguments)
    if arguments.start_offset is None:
        identity = (arguments.producer_id, arguments.producer_epoch, arguments.coordinator_epoch)
    else:
        producer = _hanging(cluster, arguments, topic_partition).producer
        identity = (producer.producer_id, producer.producer_epoch, producer.coordinator_epoch)
    try:
        with patience(f"writing a marker into {topic_partition}"):
            TransactionAdmin(cluster).abort_in_partition(topic_partition, *identity)
    except KafkaError as error:
        raise SparklogError(
            f"the transaction of producer {identity[0]} in {topic_partition} was not aborted: "
            f"{_reason(error.code, identity)}"
        ) from None
    if wants_json(arguments):
        topic, partition = topic_partition
        aborted = {"topic": topic, "partition": partition, "producer_id": identity[0]}
        print(json.dumps({"transactions": [aborted]}))
    else:
        print(f"aborted the transaction of producer {identity[0]} in {topic_partition}")
    return DONE


def _abort_transactional_id(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    transactional_id: str = arguments.transactional_id
    described = find_transactional_id(cluster, arguments, transactional_id)
    state = described.transaction_state
    if described.is_write:
        raise SparklogError(
            f"{transactional_id!r} is an atomic write, and cannot be aborted from outside. Stop its driver: "
            f"its coordinator aborts it when its members were silent for {described.timeout_ms} ms"
        )
    if state in NO_TRANSACTION:
        raise SparklogError(f"transactional id {transactional_id!r} has no open transaction: it is {state}")
    if state == TransactionState.PREPARE_COMMIT.label:
        raise SparklogError(
            f"the transaction of {transactional_id!r} cannot be aborted: its commit is decided, and its "
            "coordinator writes the markers"
        )
    with patience(f"aborting the transaction of {transactional_id!r}"):
        TransactionAdmin(cluster).fence(transactional_id, described.timeout_ms)
    if wants_json(arguments):
        aborted = {"transactional_id": transactional_id, "producer_id": described.producer_id}
        print(json.dumps({"transactions": [aborted]}))
    else:
        print(f"aborted the transaction of {transactional_id!r}, and fenced its producer")
    return DONE


def _hanging(
    cluster: ClusterClient, arguments: argparse.Namespace, topic_partition: TopicPartition
) -> OpenTransaction:
    """The transaction that begins at ``--start-offset``; SparklogError if it is unknown, or does not hang."""
    start = arguments.start_offset
    with patience(f"asking the leader of {topic_partition}"):
        opened = open_transactions(TransactionAdmin(cluster), [topic_partition])
        found = [one for one in opened if one.producer.open_since == start]
        if not found:
            others = ", ".join(str(one.producer.open_since) for one in opened)
            hint = f"; transactions are open since {others}" if others else ", nor any other"
            raise SparklogError(f"no open transaction begins at offset {start} of {topic_partition}{hint}")
        known = coordinated(cluster, found).get(found[0])
    if known is not None and known.is_write:
        raise SparklogError(
            f"the transaction at offset {start} of {topic_partition} does not hang: it belongs to the atomic "
            f"write {known.transactional_id!r} ({known.transaction_state}), which broker {known.coordinator} "
            "coordinates. Stop its driver to have it aborted"
        )
    if known is not None:
        raise SparklogError(
            f"the transaction at offset {start} of {topic_partition} does not hang: broker "
            f"{known.coordinator} coordinates it for {known.transactional_id!r} "
            f"({known.transaction_state}); abort all of it with: sparklog transactions abort "
            f"{shlex.quote(known.transactional_id)} {cluster_words(arguments)}"
        )
    return found[0]


def _reason(code: ErrorCode, identity: tuple[int, int, int]) -> str:
    if code is ErrorCode.invalid_producer_epoch:
        return f"epoch {identity[1]} is older than the one that the partition knows"
    if code is ErrorCode.transaction_coordinator_fenced:
        return f"coordinator epoch {identity[2]} is older than that of the producer's last marker"
    return code.name.upper()


def _is_given(arguments: argparse.Namespace, name: str) -> bool:
    return getattr(arguments, name) is not None


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
