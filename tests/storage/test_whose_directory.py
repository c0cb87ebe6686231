"""Whose a log directory is, whether somebody emptied it, and who holds it."""

import errno
import os
import shutil

import pytest

from sparklog.model.errors import LogDirectoryError
from sparklog.model.ids import TopicPartition
from sparklog.storage.disk import LocalDisk
from sparklog.storage.log import Log
from sparklog.storage.log_directory import LogDirectory
from tests.storage.directories import SMALL, TOPIC_ID, A, B, Bench, fill, load, open_directory, with_two_logs


def test_a_new_directory_gets_an_id_that_it_keeps(bench: Bench) -> None:
    directory = open_directory(bench)
    assert directory.created
    assert directory.is_empty
    first = directory.uuid
    directory.close()
    again = open_directory(bench, broker_id=None)
    assert (again.created, again.uuid, again.broker_id) == (False, first, 1)
    again.close()


@pytest.mark.bug("B20", "words", "A broker with an unused directory proves nothing after SIGKILL.")
def test_a_directory_that_never_had_a_log_was_not_emptied(bench: Bench) -> None:
    directory = open_directory(bench)
    load(directory)
    directory.close()
    again = open_directory(bench)
    assert (again.is_empty, again.is_emptied) == (True, False)
    again.close()


@pytest.mark.bug("B20")
def test_nor_one_whose_logs_were_deleted(bench: Bench) -> None:
    directory = with_two_logs(bench)
    for topic_partition in (A, B):
        directory.delete_log(topic_partition)
    directory.close()
    again = open_directory(bench)
    assert (again.is_empty, again.is_emptied) == (True, False)
    again.close()


@pytest.mark.bug(
    "B21", "words", "A broker that deleted its last log on a full disk proves nothing at its next start."
)
def test_nor_one_where_the_deletion_of_the_last_log_met_a_full_disk(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = open_directory(bench)
    load(directory)
    fill(bench, directory.create_log(A, TOPIC_ID, SMALL), 3)
    with monkeypatch.context() as full:
        full.setattr(LocalDisk, "write_atomically", no_space)
        with pytest.raises(OSError, match="no space"):
            directory.delete_log(A)
    directory.close()
    again = open_directory(bench)
    load(again)
    assert (again.is_empty, again.is_emptied) == (True, False)
    again.close()


@pytest.mark.bug(
    "B28", "words", "A kill during the deletion of a topic with a long name costs the broker its proof."
)
@pytest.mark.parametrize("length", [3, 212, 213, 214, 249])
def test_a_kill_during_the_deletion_of_the_last_log_leaves_a_proven_directory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """The name of what is left of a deletion has no room for the longest topics' names."""
    topic_partition = TopicPartition("t" * length, 0)
    directory = open_directory(bench)
    load(directory)
    fill(bench, directory.create_log(topic_partition, TOPIC_ID, SMALL), 3)
    rename = LocalDisk.rename

    def and_is_killed(disk: LocalDisk, old: str, new: str) -> None:
        rename(disk, old, new)
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(LocalDisk, "rename", and_is_killed)
        with pytest.raises(KeyboardInterrupt):
            directory.delete_log(topic_partition)
    directory.close()
    again = open_directory(bench)
    load(again)
    assert (again.is_empty, again.is_emptied) == (True, False)
    again.close()


@pytest.mark.bug("B28")
def test_the_remains_of_a_topic_say_nothing_of_a_topic_whose_name_is_its_prefix(
    bench: Bench,
) -> None:
    shorter, left = TopicPartition("t" * 213, 0), f"{'t' * 213}-0.{TOPIC_ID.hex}-delete"
    assert len(left) == 255
    directory = open_directory(bench)
    load(directory)
    fill(bench, directory.create_log(shorter, TOPIC_ID, SMALL), 3)
    directory.close()
    logs = bench.directory / "logs"
    (logs / str(shorter)).rename(logs / "taken away")
    (logs / left).mkdir()
    again = open_directory(bench)
    load(again)
    assert again.is_emptied
    again.close()


@pytest.mark.bug("B73", "words", "An interrupted set-aside makes a directory look emptied.")
def test_nor_one_whose_process_was_killed_when_the_last_log_had_just_been_set_aside(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = open_directory(bench)
    load(directory)
    fill(bench, directory.create_log(A, TOPIC_ID, SMALL), 3)
    set_aside = Log.set_aside

    def and_is_killed(log: Log) -> str:
        set_aside(log)
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(Log, "set_aside", and_is_killed)
        with pytest.raises(KeyboardInterrupt):
            directory.set_aside_log(A)
    directory.close()
    again = open_directory(bench)
    assert load(again) == {}
    assert (again.is_empty, again.is_emptied) == (True, False)
    again.close()


@pytest.mark.bug("B73")
@pytest.mark.parametrize("refused", ["write_atomically", "rename"])
def test_a_log_that_a_full_disk_does_not_let_set_aside_is_found_by_the_next_start(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    directory = open_directory(bench)
    load(directory)
    fill(bench, directory.create_log(A, TOPIC_ID, SMALL), 3)
    with monkeypatch.context() as full:
        full.setattr(LocalDisk, refused, no_space)
        with pytest.raises(OSError, match="no space"):
            directory.set_aside_log(A)
    directory.close()
    again = open_directory(bench)
    assert load(again)[A].log_end_offset == 3
    again.close()


def no_space(*_unused: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


def test_a_directory_knows_that_its_only_log_was_taken_away_even_a_new_one(bench: Bench) -> None:
    directory = open_directory(bench)
    load(directory)
    directory.create_log(A, TOPIC_ID, SMALL)
    directory.close()
    shutil.rmtree(bench.directory / "logs" / str(A))
    again = open_directory(bench)
    assert again.is_emptied
    again.close()


def test_a_directory_that_lost_all_but_its_identity_was_emptied(bench: Bench) -> None:
    directory = open_directory(bench)
    load(directory)
    directory.close()
    for path in (bench.directory / "logs").iterdir():
        if path.name != "meta.properties":
            path.unlink()
    again = open_directory(bench)
    assert again.is_emptied
    again.close()


def test_two_directories_never_share_an_id(bench: Bench) -> None:
    other = LogDirectory.open(str(bench.directory / "other"), 1, "c1", bench.disk, bench.clock, boot_id="b")
    directory = open_directory(bench)
    assert other.uuid != directory.uuid
    other.close()
    directory.close()


class Syncing(LocalDisk):
    """Notes which directories are synced."""

    def __init__(self) -> None:
        self.synced: list[str] = []

    def sync_directory(self, path: str) -> None:
        self.synced.append(path)
        super().sync_directory(path)


@pytest.mark.bug("B17", "records", "A power cut removes a log directory with all synced data.")
def test_a_power_cut_does_not_take_a_directory_that_was_made_here(bench: Bench) -> None:
    disk = Syncing()
    above = bench.directory / "disks"
    LogDirectory.open(str(above / "one" / "logs"), 1, "c1", disk, bench.clock, boot_id="b").close()
    assert {str(bench.directory), str(above), str(above / "one")} <= set(disk.synced)


@pytest.mark.bug("B17")
def test_nor_one_that_a_process_had_just_made_when_it_was_killed(bench: Bench) -> None:
    disk = Syncing()
    (bench.directory / "logs").mkdir()
    LogDirectory.open(str(bench.directory / "logs"), 1, "c1", disk, bench.clock, boot_id="b").close()
    assert str(bench.directory) in disk.synced


def test_a_directory_above_that_cannot_be_read_is_no_obstacle(bench: Bench, caplog) -> None:
    class Closed(LocalDisk):
        def sync_directory(self, path: str) -> None:
            if path == str(bench.directory):
                raise PermissionError(13, "permission denied", path)
            super().sync_directory(path)

    LogDirectory.open(str(bench.directory / "logs"), 1, "c1", Closed(), bench.clock, boot_id="b").close()
    assert "cannot sync the name of" in caplog.text


def test_its_properties_are_a_file_that_kafka_reads_too(bench: Bench) -> None:
    open_directory(bench).close()
    lines = (bench.directory / "logs" / "meta.properties").read_text().splitlines()
    assert lines[:3] == ["version=0", "cluster.id=c1", "broker.id=1"]
    assert lines[3].startswith("directory.id=")


def test_another_broker_s_directory_is_refused(bench: Bench) -> None:
    open_directory(bench).close()
    with pytest.raises(LogDirectoryError, match="belongs to broker 1, this is broker 2"):
        open_directory(bench, broker_id=2)
    open_directory(bench).close()


def test_another_cluster_s_directory_is_refused(bench: Bench) -> None:
    open_directory(bench).close()
    with pytest.raises(LogDirectoryError, match="belongs to cluster c1, but ZooKeeper has cluster c2"):
        open_directory(bench, cluster="c2")


@pytest.mark.parametrize(
    "content", [b"", b"version=0\ncluster.id=c1\n", b"version=9\n", b"no equals sign\n", b"\xff"]
)
def test_unreadable_properties_are_refused_not_replaced(bench: Bench, content: bytes) -> None:
    open_directory(bench).close()
    path = bench.directory / "logs" / "meta.properties"
    path.write_bytes(content)
    with pytest.raises(LogDirectoryError, match=r"meta\.properties does not say whose"):
        open_directory(bench)
    assert path.read_bytes() == content


def test_logs_without_an_owner_are_refused(bench: Bench) -> None:
    with_two_logs(bench).close()
    (bench.directory / "logs" / "meta.properties").unlink()
    with pytest.raises(LogDirectoryError, match=r"a\.b-c-0.* but no meta\.properties"):
        open_directory(bench)


def test_an_empty_directory_needs_a_broker_id(bench: Bench) -> None:
    with pytest.raises(LogDirectoryError, match=r"no broker\.id was given"):
        open_directory(bench, broker_id=None)


def test_a_path_that_is_a_file_is_refused(bench: Bench) -> None:
    (bench.directory / "logs").write_text("x")
    with pytest.raises(LogDirectoryError, match="cannot be used"):
        open_directory(bench)


def test_a_directory_in_use_is_refused_with_the_process_that_uses_it(bench: Bench) -> None:
    directory = open_directory(bench)
    with pytest.raises(LogDirectoryError, match=f"in use by process {os.getpid()}"):
        open_directory(bench)
    directory.close()
    open_directory(bench).close()
