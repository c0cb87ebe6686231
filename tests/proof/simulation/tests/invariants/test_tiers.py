"""Manifests lead to whole copies of what is committed, by the leader; disks give up what is in one."""

import uuid
from dataclasses import replace
from types import SimpleNamespace

import pytest
from crc32c import crc32c

from simulation.invariants import copies
from simulation.invariants.invariant import Violation
from simulation.invariants.tiers import TierRules
from simulation.truth import PartitionTruth, ReplicaView, entry_of
from sparklog.broker.remote_log.copying.heads import head_path
from sparklog.core.remote_log.head import Head, encode_head
from sparklog.core.remote_log.page import build_page
from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment
from sparklog.core.remote_log.state_object import SegmentState, build_state
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.records.envelope import parse_header, stamp
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.remote_segment.build import SegmentBatch, SegmentBuilder
from sparklog.records.remote_segment.identity import SegmentIdentity

TP = TopicPartition("quakes", 0)
REMOTE = RemotePartition("quakes", uuid.UUID(int=7), 0)
EPOCH = 3


def a_batch(offset, text=b"a record"):
    batch = bytearray(build_records_batch([Record(value=text)], now_ms=1_000 + offset))
    stamp(batch, 0, offset, EPOCH)
    return SegmentBatch(parse_header(batch), memoryview(bytes(batch)))


class Tier:
    """A partition with six committed batches of one record, its store, and its manifest."""

    def __init__(self):
        self.truth = PartitionTruth(TP, REMOTE.topic_id)
        self.truth.committed = [entry_of(a_batch(offset).header) for offset in range(6)]
        self.truth.state = SimpleNamespace(leader_epoch=EPOCH)
        self.objects = {}
        self.now_ms = 0
        self.rules = TierRules(self.objects, 1_000, lambda: self.now_ms)
        self.head = Head(REMOTE.topic_id, "file:///history")
        self.version = 0

    def upload(
        self, base, end, *, epoch=EPOCH, epochs=((EPOCH, 0),), text=b"a record", aborted=(), is_raw=False
    ):
        """Put the objects of a copy; the segment that a head may name."""
        batches = [
            replace(a_batch(offset, text), is_aborted=offset in aborted) for offset in range(base, end)
        ]
        segment_id = f"{len(self.objects) + 1:032x}"
        identity = SegmentIdentity(segment_id, TP.topic, str(REMOTE.topic_id), 0, base, epoch)
        builder = SegmentBuilder(identity, is_raw=is_raw)
        arrow = b"" if is_raw else b"".join(builder.arrow_pieces(batches))
        rest = b"".join(builder.rest_pieces(batches))
        state = build_state(segment_id, SegmentState(epochs, (), b""))
        segment = RemoteSegment(
            base, end, 1_000, 100, segment_id, epoch, len(arrow), len(rest), len(state), crc32c(state)
        )
        for suffix, data in (("arrow", arrow), ("rest", rest), ("state", state)):
            self.objects[REMOTE.object_name(segment, suffix)] = data
        return segment

    def write(self, head):
        """The head is in ZooKeeper, and looked at."""
        self.version += 1
        node = SimpleNamespace(data=encode_head(head), stat=SimpleNamespace(version=self.version))
        nodes = {head_path(REMOTE): node}
        self.rules.look_at_zookeeper(nodes, [self.truth])
        self.head = head

    def copy(self, base, end, **changes):
        self.write(self.head.with_copied(self.upload(base, end, **changes)))


@pytest.fixture
def tier():
    return Tier()


def broken(rule, text):
    return pytest.raises(Violation, match=f"{rule}: .*{text}")


def test_copies_of_what_is_committed_follow_each_other_and_what_they_have_may_leave_disks(tier):
    tier.copy(0, 2)
    tier.copy(2, 5)
    tier.rules.on_replica(tier.truth, ReplicaView(BrokerId(1), log_start=5), None, [])
    with broken("LocalDeletionFollowsTheHead", "broker 1 begins at 6; heads led up to 5 only"):
        tier.rules.on_replica(tier.truth, ReplicaView(BrokerId(1), log_start=6), None, [])


@pytest.mark.parametrize("suffix", ["arrow", "rest", "state"])
def test_a_head_that_leads_to_an_object_that_is_not_there_or_not_whole_is_found(tier, suffix):
    segment = tier.upload(0, 2)
    name = REMOTE.object_name(segment, suffix)
    data = tier.objects.pop(name)
    with broken("HeadsNameWholeObjects", "which is not whole"):
        tier.write(tier.head.with_copied(segment))
    tier.objects[name] = data[:-1]
    with broken("HeadsNameWholeObjects", "which is not whole"):
        tier.write(tier.head.with_copied(segment))


def test_a_copy_with_other_bytes_than_those_that_are_committed_is_found(tier):
    with broken("HeadsNameWholeObjects", "the first that differs"):
        tier.copy(0, 2, text=b"another record")


def test_a_copy_that_lacks_a_batch_is_found(tier):
    segment = tier.upload(0, 2)
    tier.objects.update(
        {
            REMOTE.object_name(replace(segment, end_offset=3), suffix): tier.objects[
                REMOTE.object_name(segment, suffix)
            ]
            for suffix in segment.suffixes
        }
    )
    with broken("HeadsNameWholeObjects", "has 2 batches; committed are 3"):
        tier.write(tier.head.with_copied(replace(segment, end_offset=3)))


def test_a_file_without_a_row_that_counts_or_with_one_that_was_aborted_is_found(tier, monkeypatch):
    monkeypatch.setattr(copies, "_was_aborted", lambda truth, header: header.base_offset == 1)
    with broken("FilesHaveTheRowsThatCount", r"has the rows \[0, 1\]; .* are \[0\]; the first .* \[1\]"):
        tier.copy(0, 2)
    tier.copy(0, 2, aborted=(1,))
    with broken("FilesHaveTheRowsThatCount", r"has the rows \[2\]; .* are \[2, 3\]; the first .* \[3\]"):
        tier.copy(2, 4, aborted=(3,))


def test_a_raw_copy_has_no_file_and_any_other_has_all_rows(tier):
    with broken("FilesHaveTheRowsThatCount", r"has the rows \[\]; .* are \[0, 1\]"):
        tier.copy(0, 2, is_raw=True)
    tier.truth.is_raw = True
    tier.copy(0, 2, is_raw=True)
    with broken("FilesHaveTheRowsThatCount", r"has the rows \[2, 3\]; .* are \[\]"):
        tier.copy(2, 4)


def test_a_file_with_rows_of_two_versions_is_found_and_one_with_too_many_changes_is_raw(tier, monkeypatch):
    monkeypatch.setattr(copies, "schema_version_of", lambda batch, header: 1 + header.base_offset // 2)
    tier.copy(0, 2)
    with broken("FilesHaveOneVersion", r"a copy of 2 to 5 has rows of the versions \[2, 2, 3\]"):
        tier.copy(2, 5)
    monkeypatch.setattr(copies, "CHANGES_MAX", 0)
    with broken("FilesHaveTheRowsThatCount", r"has the rows \[2, 3, 4\]; .* are \[\]"):
        tier.copy(2, 5)
    tier.copy(2, 5, is_raw=True)


def test_a_copy_of_a_leader_that_was_replaced_is_found(tier):
    with broken("HeadsAreOfTheLeader", "a copy of epoch 2 came into a head in epoch 3"):
        tier.copy(0, 2, epoch=2)


@pytest.mark.parametrize("epochs", [(), ((EPOCH, 1),), ((EPOCH - 1, 0),)])
def test_a_copy_that_does_not_know_an_epoch_of_its_records_is_found(tier, epochs):
    with broken("EpochsAreAsTheLogSays", "the log has"):
        tier.copy(0, 2, epochs=epochs)


def test_a_page_is_whole_and_its_segments_are_looked_at_once(tier):
    first, second = tier.upload(0, 2), tier.upload(2, 4)
    tier.write(tier.head.with_copied(first))
    tier.write(tier.head.with_copied(second))
    tier.truth.state = SimpleNamespace(leader_epoch=EPOCH + 1)
    page, data = build_page(REMOTE, "a" * 32, [first, second])
    with broken("HeadsNameWholeObjects", "leads to a page"):
        tier.write(tier.head.with_page(page))
    tier.objects[REMOTE.page_name(page.base_offset, page.page_id)] = data
    tier.write(tier.head.with_page(page))
    assert tier.rules.unrest([]) is None


def test_a_history_neither_begins_nor_ends_earlier_than_it_did(tier):
    tier.copy(0, 2)
    tier.copy(2, 4)
    whole = tier.head
    tier.write(whole.from_offset(1))
    with broken("HistoriesGoOn", "from 1 to 4 was replaced by one from 0 to 4"):
        tier.write(whole)
    with broken("HistoriesGoOn", "from 1 to 4 was replaced by one from 1 to 2"):
        tier.write(replace(whole, start_offset=1, tail=whole.tail[:1]))
    tier.write(whole.from_offset(4))


def test_what_a_head_leads_to_is_deleted_by_nobody_until_the_head_or_the_topic_is_gone(tier):
    tier.copy(0, 2)
    tier.copy(2, 4)
    first = REMOTE.object_name(tier.head.tail[0], "state")
    with broken("NamedObjectsStay", "is deleted, to which the head leads"):
        tier.rules.on_delete(first, "broker-2#1")
    tier.rules.on_delete("topic=quakes/partition=0/another", "broker-2#1")
    tier.write(tier.head.from_offset(2))
    tier.rules.on_delete(first, "broker-2#1")
    second = REMOTE.object_name(tier.head.tail[0], "state")
    tier.rules.forget(tier.truth)
    tier.rules.on_delete(second, "broker-2#1")


def test_at_rest_nothing_is_left_of_a_deleted_topic_whether_a_manifest_had_it_or_not(tier):
    tier.copy(0, 2)
    tier.upload(2, 4)
    tier.rules.forget(tier.truth)
    assert "3 objects are of a topic that was deleted" in tier.rules.unrest([])
    for name in REMOTE.object_names(tier.head.tail[0]):
        del tier.objects[name]
    assert "3 objects are in no log" in tier.rules.unrest([])
    tier.objects.clear()
    assert tier.rules.unrest([]) is None


def test_what_no_head_leads_to_stays_for_the_grace(tier):
    tier.rules.on_put("upload", "broker-1#1")
    tier.now_ms = 899
    with broken("GarbageHasAGrace", "upload is deleted; no head leads to it since 0 ms, now it is 899 ms"):
        tier.rules.on_delete("upload", "broker-2#1")
    tier.rules.on_put("upload", "broker-1#1")
    tier.now_ms = 1_800
    tier.rules.on_delete("upload", "broker-2#1")


def test_only_its_uploader_deletes_at_once_what_no_head_led_to(tier):
    tier.rules.on_put("upload", "broker-1#1")
    tier.rules.on_delete("upload", "broker-1#1")
    tier.rules.on_put("upload", "broker-1#1")
    with broken("GarbageHasAGrace", "upload is deleted"):
        tier.rules.on_delete("upload", "broker-1#2")


def test_an_uploader_waits_as_others_do_once_a_head_has_led_there(tier):
    segment = tier.upload(0, 2)
    names = REMOTE.object_names(segment)
    for name in names:
        tier.rules.on_put(name, "broker-1#1")
    tier.write(tier.head.with_copied(segment))
    with broken("NamedObjectsStay", "to which the head leads"):
        tier.rules.on_delete(names[0], "broker-1#1")


def test_a_replaced_page_stays_for_the_grace_and_what_left_the_log_does_not(tier):
    first = tier.upload(0, 2)
    tier.write(tier.head.with_copied(first))
    page, data = build_page(REMOTE, "a" * 32, [first])
    name = REMOTE.page_name(page.base_offset, page.page_id)
    tier.objects[name] = data
    tier.write(tier.head.with_page(page))
    tier.now_ms = 5_000
    second = tier.upload(2, 4)
    tier.write(tier.head.with_copied(second))
    grown, data = build_page(REMOTE, "b" * 32, [first, second])
    tier.objects[REMOTE.page_name(grown.base_offset, grown.page_id)] = data
    tier.write(tier.head.with_page(grown))
    with broken("GarbageHasAGrace", "since 5000 ms, now it is 5000 ms"):
        tier.rules.on_delete(name, "broker-2#1")
    tier.write(tier.head.from_offset(2))
    tier.rules.on_delete(REMOTE.object_name(first, "state"), "broker-2#1")


def test_at_rest_nothing_waits_to_be_copied_and_nothing_is_left_over(tier):
    def log(*ends):
        segments = [SimpleNamespace(end_offset=end) for end in ends]
        return SimpleNamespace(segments=segments, config=SimpleNamespace(remote_storage=True))

    tier.truth.state = SimpleNamespace(leader_epoch=EPOCH, leader=BrokerId(1))
    view = tier.truth.view(BrokerId(1))
    view.log = log(2, 4, 6)
    tier.copy(0, 2)
    assert "it is copied up to 2 of 4" in tier.rules.unrest([tier.truth])
    tier.copy(2, 4)
    assert tier.rules.unrest([tier.truth]) is None
    tier.upload(4, 6)
    assert "3 objects are in no log" in tier.rules.unrest([tier.truth])
    view.history_start = 3
    assert "begins at 3; its head at 0" in tier.rules.unrest([tier.truth])


def test_only_what_an_election_lost_is_cut_and_all_of_it_must_be_by_the_end(tier):
    tier.copy(0, 2)
    tier.copy(2, 5)
    with broken("HistoriesGoOn", "0 to 5 was replaced by one from 0 to 3; the first batch that is cut is"):
        tier.write(tier.head.cut_to(3, EPOCH))
    for entry in tier.truth.committed[3:]:
        tier.truth.lost[entry.base_offset] = [entry]
    del tier.truth.committed[3:]
    tier.truth.state.replicas = ()
    with broken("HistoriesAreOfTheLog", "a copy of 2 to 5 has 3 batches; committed are 1"):
        tier.rules.check_at_rest([tier.truth])
    with broken("HistoriesGoOn", "the first batch that is cut is"):
        tier.write(tier.head.cut_to(2, EPOCH))
    tier.write(tier.head.cut_to(3, EPOCH))
    tier.rules.check_at_rest([tier.truth])
