"""A broker whose disk fails stops, so that others lead, and is not trusted with what it never wrote."""

import contextlib
import errno
import os
import threading
from dataclasses import replace

import pytest

from sparklog.broker.life.server import BrokerServer
from sparklog.core.controller.state import znodes
from sparklog.model.errors import ErrorCode, LogDirectoryError
from sparklog.model.ids import BrokerId
from sparklog.storage import disk as disks
from sparklog.storage.disk import LocalDisk, SyncFailed, WriteFailed
from sparklog.storage.flush import Flush
from sparklog.storage.log import Log
from sparklog.storage.log_directory import LogDirectory

pytestmark = pytest.mark.integration


@pytest.mark.scenario("S6")
def test_a_broker_whose_disk_fails_stops_so_that_others_lead(broker) -> None:
    broker.lead()
    (partition,) = broker.server.body.replicas.partitions()

    def broken(*_args):
        raise OSError(28, "No space left on device")

    partition.log.append = broken
    with contextlib.suppress(ConnectionError):  # the answer races with the stop
        assert broker.produce(b"a").error_code is ErrorCode.kafka_storage_error
    assert broker.server.wait_stopped(20)
    assert "No space left" in broker.server.failure


@pytest.mark.bug(
    "B51", "records", "A broker whose fsync failed returns trusted with records that its disk never had."
)
def test_a_broker_whose_fsync_fails_stops_and_leaves_word_that_its_directory_is_suspect(
    broker, options, zookeeper, monkeypatch
) -> None:
    broker.lead()
    broker.produce(b"a")
    (partition,) = broker.server.body.replicas.partitions()
    sync = disks._fsync

    def broken(descriptor, path):
        """Other brokers may live in this process, whose disks are whole."""
        if path.startswith(options.log_dirs):
            raise SyncFailed(5, "Input/output error", path)
        sync(descriptor, path)

    monkeypatch.setattr(disks, "_fsync", broken)
    partition.log_guard.flush()
    assert broker.server.wait_stopped(20)
    monkeypatch.undo()
    node = zookeeper.get(znodes.incarnation_path(BrokerId(1)))
    marked = znodes.decode_incarnation(BrokerId(1), node.data, node.stat.version, node.stat.mzxid)
    assert len(marked.record.suspect) == 1
    assert marked.record.suspect == marked.record.directories
    assert zookeeper.exists(znodes.broker_path(BrokerId(1))) is None


@pytest.mark.bug("B22", "words", "A failed fsync costs a broker its proof a second time.")
def test_a_broker_that_cannot_forget_a_failed_fsync_does_not_start(
    options, zookeeper, tmp_path, monkeypatch
) -> None:
    two = replace(options, log_dirs=(str(tmp_path / "one"), str(tmp_path / "two")))
    first = BrokerServer(two)
    first.start()
    one, other = first.body.parts.log_dirs._directories
    other.write_suspects([str(one.uuid)])
    first.stop(clean=False)

    def broken(*_args):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr(LogDirectory, "write_suspects", broken)
        with pytest.raises(LogDirectoryError, match=r"two says .* cannot be taken away now: .*output error"):
            BrokerServer(two).start()
    assert zookeeper.exists(znodes.broker_path(BrokerId(1))) is None
    for _ in range(2):
        again = BrokerServer(two)
        again.start()
        again.stop(clean=False)
    node = zookeeper.get(znodes.incarnation_path(BrokerId(1)))
    last = znodes.decode_incarnation(BrokerId(1), node.data, node.stat.version, node.stat.mzxid)
    assert (last.record.intact_since, last.number) == (2, 3)


def incarnation(zookeeper):
    node = zookeeper.get(znodes.incarnation_path(BrokerId(1)))
    return znodes.decode_incarnation(BrokerId(1), node.data, node.stat.version, node.stat.mzxid)


def start(options):
    server = BrokerServer(options)
    server.start()
    return server


@pytest.fixture
def after_a_failed_fsync(options, zookeeper, tmp_path):
    """A broker with two directories went on with the second, told ZooKeeper, and was killed."""
    two = replace(options, log_dirs=(str(tmp_path / "one"), str(tmp_path / "two")))
    first = start(two)
    one, other = first.body.parts.log_dirs._directories
    failures = first.body.parts.failures
    failures.report(failures.take_offline(one, "an fsync failed", is_suspect=True))
    for thread in threading.enumerate():
        if thread.name == "suspect-directory":
            thread.join(20)
    assert other.suspects() == set(), "what ZooKeeper knows needs no note"
    first.stop(clean=False)
    return two


@pytest.mark.bug("B29", "records", "The note of a failed fsync is lost, or applied twice.")
def test_a_failed_fsync_is_known_although_the_directory_with_its_note_cannot_be_opened(
    after_a_failed_fsync, zookeeper, tmp_path
) -> None:
    (tmp_path / "two").rename(tmp_path / "away")
    (tmp_path / "two").write_bytes(b"in its place")
    start(after_a_failed_fsync).stop(clean=False)
    assert (incarnation(zookeeper).record.intact_since, incarnation(zookeeper).number) == (1, 1)


@pytest.mark.bug("B29")
def test_the_note_of_a_failed_fsync_is_applied_once_if_its_directory_goes_offline(
    after_a_failed_fsync, zookeeper, tmp_path, monkeypatch
) -> None:
    load = LogDirectory.load_logs

    def refuse(directory, *args, **named):
        if directory.path.endswith("two"):
            raise OSError(28, "No space left on device")
        return load(directory, *args, **named)

    with monkeypatch.context() as full:
        full.setattr(LogDirectory, "load_logs", refuse)
        start(after_a_failed_fsync).stop(clean=False)
    assert incarnation(zookeeper).record.intact_since == 1
    start(after_a_failed_fsync).stop(clean=False)
    assert (incarnation(zookeeper).record.intact_since, incarnation(zookeeper).number) == (1, 2)


@pytest.mark.bug("B31")
@pytest.mark.parametrize(("error", "is_trusted"), [(errno.EROFS, False), (errno.EACCES, True)])
def test_a_disk_that_went_read_only_before_a_start_is_not_trusted_when_it_is_back(
    options, zookeeper, tmp_path, monkeypatch, error, is_trusted
) -> None:
    two = replace(options, log_dirs=(str(tmp_path / "one"), str(tmp_path / "two")))
    start(two).stop(clean=False)
    lock = LocalDisk.lock

    def refuse(disk, path):
        if path.startswith(str(tmp_path / "two")):
            raise OSError(error, os.strerror(error))
        return lock(disk, path)

    with monkeypatch.context() as refusing:
        refusing.setattr(LocalDisk, "lock", refuse)
        start(two).stop(clean=False)
    assert bool(incarnation(zookeeper).record.suspect) is not is_trusted
    for _ in range(2):  # the first has it again and proves nothing of it, the next one is trusted
        start(two).stop(clean=False)
    assert incarnation(zookeeper).record.suspect == ()
    assert (incarnation(zookeeper).record.intact_since, incarnation(zookeeper).number) == (
        0 if is_trusted else 2,
        3,
    )


@pytest.mark.bug("B30", "records", "A disk that fails while its broker stops is trusted at the next start.")
@pytest.mark.parametrize("fails", ["flush", "close"])
def test_a_disk_that_fails_an_fsync_during_a_stop_is_not_trusted_at_the_next_start(
    broker, options, zookeeper, monkeypatch, fails
) -> None:
    broker.lead()
    broker.produce(b"a")

    (partition,) = broker.server.body.replicas.partitions()
    run, close = Flush.run, Log.close

    def fail_to_run(flush):
        if flush.disk is partition.log.disk:  # other brokers may live in this process
            raise SyncFailed(5, "Input/output error")
        run(flush)

    def fail_to_close(log):
        if log is partition.log:
            raise SyncFailed(5, "Input/output error")
        close(log)

    with monkeypatch.context() as failing:
        if fails == "flush":
            failing.setattr(Flush, "run", fail_to_run)
        else:
            failing.setattr(Log, "close", fail_to_close)
        broker.server.stop()
    start(options).stop(clean=False)
    last = incarnation(zookeeper)
    assert last.record.intact_since == last.number


@pytest.mark.bug("B31", "records", "A disk that fails at a start is trusted at the next.")
def test_a_disk_that_fails_the_last_directory_at_a_start_is_not_trusted_at_the_next(
    options, zookeeper, monkeypatch
) -> None:
    start(options).stop(clean=False)

    def fail(*_args, **_named):
        raise WriteFailed(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr(LogDirectory, "load_logs", fail)
        with pytest.raises(WriteFailed):
            start(options)
    start(options).stop(clean=False)
    assert (incarnation(zookeeper).record.intact_since, incarnation(zookeeper).number) == (1, 1)


@pytest.mark.bug("B52", "away", "A broker whose disk accepts no checkpoint or no new log keeps leading.")
@pytest.mark.parametrize("chore", ["checkpoint_high_watermarks", "checkpoint_recovery_points"])
def test_a_broker_whose_disk_takes_no_checkpoint_stops_so_that_others_lead(
    broker, options, chore, monkeypatch
) -> None:
    broker.lead()
    write = LocalDisk.write_atomically

    def full(disk, path, data, **how):
        """Other brokers may live in this process, whose disks have room."""
        if path.startswith(options.log_dirs):
            raise OSError(28, "No space left on device")
        write(disk, path, data, **how)

    monkeypatch.setattr(LocalDisk, "write_atomically", full)
    getattr(broker.server.body.parts.chores, chore)()
    assert broker.server.wait_stopped(20)
    assert "No space left" in broker.server.failure
