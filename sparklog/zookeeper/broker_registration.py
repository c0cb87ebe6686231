"""Registration of a broker: one multi that makes the broker alive and records what its restart proves.

    delete its own earlier ephemeral node, if it still exists
    create /brokers/ids/N           ephemeral: the broker is alive while the node exists
    set /brokers/incarnations/N     at the version that was read: directories, host, boot, what is intact
    set /brokers/suspects/N         at the version that was read: empty

The four operations are one ZooKeeper transaction, and its id is the broker epoch: the ephemeral node's
``czxid`` and the incarnation's ``mzxid``. So the controller never combines a live broker with the proof of an
earlier incarnation.

The previous process with this id may be dead while its session still lasts. A broker that holds the lock of
the same log directory, on the same boot of the same host, replaces the earlier node at once, because the lock
proves that the process ended; waiting for the expiry would cost every quick restart a session timeout. Any
other broker is refused while the node exists.

A running broker reports log directories whose fsync failed in ``/brokers/suspects/N``, because a change of
the incarnation's node would mean another incarnation. The next registration adds them to the previous record
and empties the node; suspect directories that the new incarnation lacks stay in the new record.
"""

import base64
import logging
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.incarnation import (
    DirectoryIdentity,
    Incarnation,
    StoredIncarnation,
    mark_suspect,
    next_incarnation,
    same_machine,
    shares_directory,
)
from sparklog.model.cluster_facts import Broker
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.zookeeper import (
    Check,
    ConnectionLost,
    Create,
    Delete,
    MultiFailed,
    Operation,
    SetData,
    Stat,
    ZooKeeper,
)

ATTEMPTS_MAX: Final = 10
CLUSTER_PARENT: Final = znodes.CLUSTER_ID.rpartition("/")[0]

logger: Final = logging.getLogger(__name__)


class BrokerIdInUse(SparklogError):  # noqa: N818 (says what is the case)
    """Another broker is registered under this broker id."""


@dataclass(frozen=True, slots=True)
class _Registered:
    """The nodes of one broker id: the live registration, and the last incarnation."""

    alive: Broker | None
    alive_stat: Stat | None
    previous: StoredIncarnation | None
    reported: frozenset[str] = frozenset()
    """The directories that it reported as suspect while it ran; ``previous`` includes them."""
    reports_version: int = -1
    """The version of the node that says so; -1 without one."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The content that a multi tried to write, by which its success is recognised after a lost answer."""

    record: Incarnation
    number: int


def read_or_create_cluster_id(zookeeper: ZooKeeper) -> str:
    """The cluster's id; generates and stores it if the cluster has none."""
    zookeeper.ensure_path(CLUSTER_PARENT)
    for _ in range(ATTEMPTS_MAX):
        node = zookeeper.get(znodes.CLUSTER_ID)
        if node is not None:
            return znodes.decode_cluster_id(node.data)
        try:
            zookeeper.multi([Create(znodes.CLUSTER_ID, znodes.encode_cluster_id(_new_cluster_id()))])
        except (MultiFailed, ConnectionLost) as problem:
            logger.info("creating the cluster id: %s; reading it again", problem)
    raise SparklogError(f"{znodes.CLUSTER_ID} could neither be read nor created in {ATTEMPTS_MAX} attempts")


def _new_cluster_id() -> str:
    """A UUID in 22 characters of URL-safe base64, as in Kafka; never begins with '-'."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def register_broker(
    zookeeper: ZooKeeper,
    broker: Broker,
    directories: Sequence[DirectoryIdentity],
    boot_id: str,
    host_id: str,
    *,
    timestamp_ms: int = 0,
    offline_directories: int = 0,
) -> BrokerEpoch:
    """Register ``broker`` (its epoch is ignored); its new epoch. The caller holds the directories' locks, but
    for as many ``offline_directories`` as it could not open.

    Raises BrokerIdInUse while a foreign broker is alive under the id, SessionExpired if the session ends
    meanwhile (nothing of it remains then), ConnectionLost if ZooKeeper stays away.
    """
    generation = zookeeper.generation
    zookeeper.ensure_path(znodes.BROKER_IDS)
    zookeeper.ensure_path(znodes.BROKER_INCARNATIONS)
    zookeeper.ensure_path(znodes.BROKER_SUSPECTS)
    attempt: _Attempt | None = None
    for _ in range(ATTEMPTS_MAX):
        registered = _read(zookeeper, broker.id)
        if (
            attempt is not None
            and registered.alive_stat is not None
            and _is_ours(registered, attempt, zookeeper)
        ):
            return BrokerEpoch(registered.alive_stat.czxid)
        if not _may_replace(registered, directories, boot_id, host_id):
            raise _in_use(registered, broker)
        record = next_incarnation(
            registered.previous,
            directories,
            host_id=host_id,
            boot_id=boot_id,
            offline_directories=offline_directories,
        )
        previous = registered.previous
        attempt = _Attempt(record, 0 if previous is None else previous.number + 1)
        try:
            zookeeper.multi(_operations(registered, broker, record, timestamp_ms), generation=generation)
        except MultiFailed as failed:
            logger.info("registration of broker %d meets a change (%s): reading again", broker.id, failed)
        except ConnectionLost as lost:
            logger.warning("registration of broker %d: %s; looking whether it took place", broker.id, lost)
    raise SparklogError(
        f"broker {broker.id} could not be registered in {ATTEMPTS_MAX} attempts: others keep changing it"
    )


def withdraw_suspect(
    zookeeper: ZooKeeper, broker: BrokerId, broker_epoch: BrokerEpoch, directory_uuid: str
) -> None:
    """End the registration and mark the directory as suspect, because one of its fsyncs failed.

    Both are one multi, so that the controller does not elect the broker in between. The caller still holds
    the directory's lock, and repeats this after a ConnectionLost or SessionExpired until it succeeds, because
    the failure is recorded nowhere else. Does nothing if another incarnation has registered.
    """
    for _ in range(ATTEMPTS_MAX):
        registered = _read(zookeeper, broker)
        stored, alive = registered.previous, registered.alive
        if stored is None or stored.broker_epoch != broker_epoch:
            return
        is_alive = alive is not None and alive.epoch == broker_epoch
        if directory_uuid in stored.record.suspect and not is_alive:
            return
        data = znodes.encode_incarnation(mark_suspect(stored, directory_uuid))
        operations: list[Operation] = [SetData(znodes.incarnation_path(broker), data, stored.number)]
        if is_alive:
            operations.append(Delete(znodes.broker_path(broker)))
        try:
            zookeeper.multi(operations)
            return
        except MultiFailed as failed:
            logger.info("broker %d meets a change while it withdraws (%s): reading again", broker, failed)
    raise SparklogError(
        f"broker {broker} could not withdraw in {ATTEMPTS_MAX} attempts: others keep changing it"
    )


def report_suspect(
    zookeeper: ZooKeeper, broker: BrokerId, directory_uuid: str, broker_epoch: BrokerEpoch | None = None
) -> None:
    """Record that an fsync of this directory failed, while the broker continues with other directories.

    Without ``broker_epoch`` the report is about the last incarnation; a starting broker that holds the locks
    does this. Does nothing if another incarnation has registered. May be repeated.

    Raises ConnectionLost if ZooKeeper does not answer any attempt, because a failing start must not lose the
    report.
    """
    problem: SparklogError | None = None
    zookeeper.ensure_path(znodes.BROKER_SUSPECTS)
    for _ in range(ATTEMPTS_MAX):
        registered = _read(zookeeper, broker)
        stored = registered.previous
        if stored is None or broker_epoch not in (None, stored.broker_epoch):
            return
        if directory_uuid in stored.record.suspect:
            return
        guard = Check(znodes.incarnation_path(broker), stored.number)
        report = _write_reports(registered, broker, {*registered.reported, directory_uuid})
        try:
            zookeeper.multi([guard, report])
            return
        except MultiFailed as failed:
            logger.info("broker %d meets a change while it reports (%s): reading again", broker, failed)
        except ConnectionLost as lost:
            logger.warning("broker %d reports: %s; looking whether it took place", broker, lost)
            problem = lost
    raise problem or SparklogError(
        f"broker {broker} could not report a directory in {ATTEMPTS_MAX} attempts: others keep changing it"
    )


def report_missing(zookeeper: ZooKeeper, broker: BrokerId, present: Collection[str]) -> None:
    """Report each directory of the last incarnation that is not ``present``: one directory, whose id could
    not be read, failed to open in a way that may have lost writes."""
    previous = _read(zookeeper, broker).previous
    for directory_uuid in () if previous is None else previous.record.directories:
        if directory_uuid not in present:
            report_suspect(zookeeper, broker, directory_uuid)


def _write_reports(registered: _Registered, broker: BrokerId, directories: Collection[str]) -> Operation:
    path, data = znodes.suspects_path(broker), znodes.encode_suspects(directories)
    if registered.reports_version < 0:
        return Create(path, data)
    return SetData(path, data, registered.reports_version)


def read_suspect(zookeeper: ZooKeeper, broker: BrokerId) -> frozenset[str]:
    """The directories of the last incarnation whose fsync failed."""
    previous = _read(zookeeper, broker).previous
    return frozenset() if previous is None else frozenset(previous.record.suspect)


def _read(zookeeper: ZooKeeper, broker: BrokerId) -> _Registered:
    incarnation = zookeeper.get(znodes.incarnation_path(broker))
    alive = zookeeper.get(znodes.broker_path(broker))
    reports = zookeeper.get(znodes.suspects_path(broker))
    reported = frozenset() if reports is None else znodes.decode_suspects(broker, reports.data)
    return _Registered(
        alive=None
        if alive is None
        else znodes.decode_broker(broker, alive.data, BrokerEpoch(alive.stat.czxid)),
        alive_stat=None if alive is None else alive.stat,
        previous=None
        if incarnation is None
        else _with(
            reported,
            znodes.decode_incarnation(
                broker, incarnation.data, incarnation.stat.version, incarnation.stat.mzxid
            ),
        ),
        reported=reported,
        reports_version=-1 if reports is None else reports.stat.version,
    )


def _with(reported: Collection[str], stored: StoredIncarnation) -> StoredIncarnation:
    """The record with the suspect directories that were reported later."""
    suspect = tuple(sorted({*stored.record.suspect, *reported}))
    return replace(stored, record=replace(stored.record, suspect=suspect))


def _is_ours(registered: _Registered, attempt: _Attempt, zookeeper: ZooKeeper) -> bool:
    """Whether this session's attempt succeeded; decides also about an attempt without an answer."""
    previous, stat = registered.previous, registered.alive_stat
    return (
        previous is not None
        and stat is not None
        and (previous.number, previous.record) == (attempt.number, attempt.record)
        and stat.czxid == previous.broker_epoch
        and stat.ephemeral_owner == zookeeper.session_id
    )


def _may_replace(
    registered: _Registered, directories: Sequence[DirectoryIdentity], boot_id: str, host_id: str
) -> bool:
    """Whether no broker is alive under the id, or only the ended last process of this very directory."""
    previous = registered.previous
    if registered.alive is None:
        return True
    return (
        previous is not None
        and registered.alive.epoch == previous.broker_epoch
        and same_machine(previous.record, host_id=host_id, boot_id=boot_id)
        and shares_directory(previous.record, directories)
    )


def _in_use(registered: _Registered, broker: Broker) -> BrokerIdInUse:
    holder = registered.alive
    assert holder is not None, registered
    where = ", ".join(map(str, holder.endpoints.values()))
    return BrokerIdInUse(
        f"broker id {broker.id} is in use by {where} (epoch {holder.epoch}) with other "
        f"log directories or on another machine: stop that broker or choose another id; if it is dead, its "
        f"registration ends with its ZooKeeper session"
    )


def _operations(
    registered: _Registered, broker: Broker, record: Incarnation, timestamp_ms: int
) -> list[Operation]:
    alive_path, incarnation_path = znodes.broker_path(broker.id), znodes.incarnation_path(broker.id)
    data = znodes.encode_incarnation(record)
    operations: list[Operation] = []
    if registered.alive is not None:
        operations.append(Delete(alive_path))
    alive_data = znodes.encode_broker(broker, timestamp_ms=timestamp_ms)
    operations.append(Create(alive_path, alive_data, ephemeral=True))
    # The incarnation's version guards the delete too, because replacing the node raises that version.
    if registered.previous is None:
        operations.append(Create(incarnation_path, data))
    else:
        operations.append(SetData(incarnation_path, data, registered.previous.number))
    # Always written, so that a report which this ZooKeeper server had not received yet is not lost.
    operations.append(_write_reports(registered, broker.id, ()))
    return operations
