"""The log directories of one broker, over real disks: what they prove together at a start."""

import errno
import threading
import uuid

import pytest

from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.model.ids import TopicPartition
from sparklog.model.settings.config import BrokerConfig
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log_directory import BOOT_ID, LogDirectory

TOPIC = uuid.UUID(int=1)


@pytest.fixture
def start(tmp_path, clock):
    """Opens and loads the broker's two directories, as one start after another."""
    opened = []

    def start(boot="b", names=("one", "two")):
        for directory in opened:
            directory.close()
        opened[:] = [
            LogDirectory.open(str(tmp_path / name), 1, "c", LocalDisk(), clock, boot_id=boot)
            for name in names
        ]
        log_dirs = LogDirs(opened, BrokerConfig(), new_guard=threading.Lock)
        log_dirs.load(executor=None)
        return log_dirs, *opened

    yield start
    for directory in opened:
        directory.close()


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_note_of_a_failed_fsync_counts_also_if_its_own_directory_then_cannot_be_loaded(
    start, monkeypatch, error
):
    log_dirs, one, two = start()
    log_dirs.fail(one, "an fsync failed", is_suspect=True)
    write = LocalDisk.write_atomically

    def refuse(disk, path, data, **how):
        if path == f"{two.path}/{BOOT_ID}":
            raise OSError(error, "the disk refuses")
        write(disk, path, data, **how)

    monkeypatch.setattr(LocalDisk, "write_atomically", refuse)
    log_dirs, one, two = start()
    assert list(log_dirs.offline) == [two.path]
    (identity,) = log_dirs.identities()
    assert (identity.uuid, identity.corrupt) == (str(one.uuid), True)
    log_dirs.forget_suspects()
    assert two.suspects() == {str(one.uuid)}, "what a directory that is out of service says is not changed"


@pytest.mark.bug("B23")
def test_after_a_failed_fsync_only_the_logs_in_its_directory_are_those_of_a_corrupt_one(start):
    log_dirs, one, two = start()
    for number in (0, 1):
        log_dirs.create(TopicPartition("quakes", number), TOPIC, BrokerConfig().topic({}), is_new=True)
    assert [log_dirs.home_of(TopicPartition("quakes", number)) for number in (0, 1)] == [one, two]
    log_dirs.fail(two, "fsync failed", is_suspect=True)
    again, one, two = start()
    found = {identity.uuid: (identity.logs, identity.corrupt) for identity in again.identities()}
    assert found == {str(one.uuid): ({(TOPIC, 0)}, False), str(two.uuid): ({(TOPIC, 1)}, True)}


@pytest.mark.bug("B40")
def test_a_clean_stop_is_proven_until_a_start_has_registered(start):
    log_dirs, _, _ = start()
    log_dirs.close(clean_epoch=70)
    for _ in range(2):  # a start that comes to no end, and the next one
        log_dirs, _, _ = start()
        assert [identity.clean_epoch for identity in log_dirs.identities()] == [70, 70]


@pytest.mark.bug("B41")
def test_a_directory_that_no_start_of_this_boot_has_had_is_of_another(start):
    start()
    start(boot="later", names=("one",))
    log_dirs, one, two = start(boot="later")
    found = {identity.uuid: identity.same_boot for identity in log_dirs.identities()}
    assert found == {str(one.uuid): True, str(two.uuid): False}
