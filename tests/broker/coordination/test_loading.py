"""A coordinator loads its log in steps, up to the end at the election, and waits until that is committed."""

from types import SimpleNamespace

import pytest

from sparklog.broker.coordination import last_values, loading
from sparklog.broker.coordination.loading import Loads
from sparklog.broker.internal_append import InternalAppends, InternalBatch
from sparklog.broker.partition.append_request import AppendRequest
from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.coordinator.shard import Phase
from sparklog.core.group.group_machine import GroupMachine
from sparklog.core.group.records import OffsetKey, OffsetValue
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.loops import Await, Pause
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from sparklog.records.envelope import split
from sparklog.records.kafka.encode import Record
from sparklog.wire.coordinator_records.group_offsets import GroupOffsetsCodec
from tests.broker.coordination.conftest import BYTES_MAX, COORDINATED, Coordinated

COORDINATOR = AppendOrigin.COORDINATOR
LOADING = ErrorCode.coordinator_load_in_progress


def offset_record(offset, group="g"):
    key = OffsetKey(group, TopicPartition("events", 0))
    key_bytes, value = GroupOffsetsCodec().encode(StateRecord(key, OffsetValue(offset, -1, "", 1_000)))
    return Record(key=key_bytes, value=value)


def write(coordinated, *records, **producer):
    """Append a batch as an earlier coordinator would have."""
    batch = InternalBatch(
        topic_partition=COORDINATED, leader_epoch=coordinated.partition.leader_epoch, records=records,
        max_bytes=BYTES_MAX, **producer,
    )  # fmt: skip
    InternalAppends(coordinated.replicas, coordinated.parts.waits.appends, coordinated.clock).run(
        [batch], 1_000, lambda results: None
    )


@pytest.fixture
def written(coordinated):
    """Epoch 1 has written nothing yet, and a test writes before it makes epoch 3 lead and load."""
    coordinated.become(epoch=1)
    return coordinated


def lead_anew(coordinated, epoch=3):
    coordinated.become(leader=2, epoch=epoch - 1)
    coordinated.become(epoch=epoch)


def shard_of(coordinated):
    return next(iter(coordinated.coordinators.hosts())).shard


def test_a_load_is_not_over_before_the_high_watermark_has_passed_the_log_s_end(written):
    write(written, offset_record(7))
    lead_anew(written)
    written.confirm()
    question = written.load()
    assert isinstance(question, Await)
    assert question.timeout_ms > 0, "it waits, and does not turn"
    assert written.committed() == [LOADING]
    written.follow()
    written.clock.now_ms += question.timeout_ms
    written.load(times_out=True)
    assert written.committed() == [{"events": 7}]


def test_the_wait_for_the_high_watermark_looks_ever_more_seldom(written):
    write(written, offset_record(7))
    lead_anew(written)
    pauses_ms = []
    for _ in range(12):
        question = written.load(times_out=True)
        pauses_ms.append(question.timeout_ms)
        written.clock.now_ms += question.timeout_ms
    assert pauses_ms[0] <= 10
    assert pauses_ms == sorted(pauses_ms)
    assert pauses_ms[-1] == 500


def test_a_log_is_read_in_steps_with_other_work_in_between(tmp_path, clock, zookeeper):
    coordinated = Coordinated(tmp_path, clock, zookeeper, offsets_load_buffer_size="1")
    coordinated.become(epoch=1)
    coordinated.load()
    for offset in range(5):
        write(coordinated, offset_record(offset))
    lead_anew(coordinated)
    coordinated.follow()
    loop = coordinated.coordinators.loads.loop()
    steps = 0
    while isinstance(next(loop), Pause):
        steps += 1
    assert steps == 5, "one for each batch, the last of which finds the end"


def test_what_clients_ask_for_is_loaded_first_and_short_logs_before_long_ones(clock, monkeypatch):
    loads, order = Loads(clock, None, 1), []

    def step(_, load):
        order.append(load.host.name)
        if load.host.name == "short":
            hosts["asked for"].shard.is_asked_for = True  # while the short one is loaded
        return True

    hosts = {}
    for name, end in {"asked for": 9_000, "long": 500, "short": 20}.items():
        hosts[name] = SimpleNamespace(name=name, shard=SimpleNamespace(is_asked_for=False))
        loads.add(hosts[name], SimpleNamespace(log_start_offset=0, log_end_offset=end), None)
    monkeypatch.setattr(Loads, "_step", step)
    loop = loads.loop()
    while isinstance(next(loop), Pause):
        pass
    assert order == ["short", "asked for", "long"]


def test_a_shard_is_asked_for_by_a_request_of_one_of_its_keys(written):
    write(written, offset_record(7))
    lead_anew(written)
    assert not shard_of(written).is_asked_for
    assert written.committed() == [LOADING]
    assert shard_of(written).is_asked_for


def test_what_was_replayed_before_a_damaged_batch_is_not_replayed_again(written, monkeypatch):
    for offset in range(5):
        write(written, offset_record(offset))
    lead_anew(written)
    written.follow()
    replayed, times = [], []
    last = loading.last_values
    monkeypatch.setattr(
        loading, "last_values", lambda run, begins: replayed.append(len(begins)) or last(run, begins)
    )
    others = loading._not_plain

    def damaged_once(run, position):
        if not times:
            times.append(position)
            raise CorruptBatch("made up")
        return others(run, position)

    monkeypatch.setattr(loading, "_not_plain", damaged_once)
    question = written.load()
    written.confirm()
    assert written.committed() == [LOADING]
    written.clock.now_ms += question.timeout_ms
    written.load(times_out=True)
    assert written.committed() == [{"events": 4}]
    assert replayed == [5]


def test_a_first_batch_that_is_not_whole_is_neither_skipped_nor_read_without_pause(
    written, monkeypatch, caplog
):
    write(written, offset_record(7))
    lead_anew(written)
    written.confirm()
    written.follow()
    read = loading.read_parts
    monkeypatch.setattr(loading, "read_parts", lambda parts: read(parts)[:-1])
    question = written.load()
    assert (question.timeout_ms, written.committed()) == (loading.RETRY_MS, [LOADING])
    assert "the batch at offset 0 ends behind what was read" in caplog.text
    monkeypatch.undo()
    written.clock.now_ms += question.timeout_ms
    written.load(times_out=True)
    assert written.committed() == [{"events": 7}]


def test_a_batch_that_is_too_large_to_be_walked_is_loaded_as_the_others_are(written, monkeypatch):
    monkeypatch.setattr(last_values, "CHUNK_RECORDS", 2)
    for first in (0, 3, 6):
        write(written, *map(offset_record, range(first, first + 3)))
        write(written, offset_record(first, group="other"))
    lead_anew(written)
    written.confirm()
    written.follow()
    written.load()
    assert written.committed() == [{"events": 8}]


def test_a_load_whose_epoch_is_over_is_dropped(written):
    write(written, offset_record(7))
    lead_anew(written, epoch=3)
    written.load()
    written.become(leader=2, epoch=4)
    written.time(1_000)
    assert isinstance(written.load(times_out=True), Await)
    assert written.coordinators.loads._loads == []
    assert list(written.coordinators.hosts()) == []
    assert written.committed() == [ErrorCode.not_coordinator]


def test_two_elections_in_a_row_load_only_for_the_later_one(written):
    write(written, offset_record(7))
    lead_anew(written, epoch=3)
    lead_anew(written, epoch=5)
    written.follow()
    written.load()
    written.confirm()
    assert [host.leader_epoch for host in written.coordinators.hosts()] == [5]
    assert written.committed() == [{"events": 7}]


def test_a_record_that_nobody_understands_is_skipped_and_named(written, caplog):
    caplog.set_level("WARNING", logger="sparklog")
    write(written, Record(key=b"\x00\x63later", value=b"?"), offset_record(7))
    write(written, Record(key=b"\x00\x63later", value=b"!"), Record(key=None, value=b"no key"))
    lead_anew(written)
    written.follow()
    written.load()
    written.confirm()
    assert written.committed() == [{"events": 7}]
    assert "records of 1 keys were skipped while loading: a key of version 99" in caplog.text
    assert "records of 1 keys were skipped while loading: a record without a key" in caplog.text


def write_marker(coordinated, producer_id, *, is_commit):
    batch = build_marker(
        TransactionEnd(is_commit, coordinator_epoch=0), producer_id=producer_id, producer_epoch=0, now_ms=0
    )
    request = AppendRequest(batch, split(batch), -1, COORDINATOR)
    written = coordinated.partition.leader_append.append(request, 1)
    assert written.error is ErrorCode.none


@pytest.mark.parametrize(("is_commit", "counts"), [(True, 8), (False, 7)], ids=["committed", "aborted"])
def test_records_of_a_transaction_count_if_its_marker_commits_it(written, is_commit, counts):
    write(written, offset_record(7))
    write(written, offset_record(8), producer_id=9, producer_epoch=0)
    write_marker(written, 9, is_commit=is_commit)
    lead_anew(written)
    written.follow()
    written.load()
    written.confirm()
    assert written.committed() == [{"events": counts}]


def test_records_of_an_open_transaction_wait_for_its_end(written):
    write(written, offset_record(7))
    write(written, offset_record(8), producer_id=9, producer_epoch=0)
    write(written, offset_record(6, "other"))
    lead_anew(written)
    written.follow()
    written.load()
    written.confirm()
    assert written.committed() == [{"events": 7}]
    written.coordinators.on_end(COORDINATED, 9, True, written.partition.log_end_offset)
    assert written.committed() == [{"events": 8}]


def test_a_log_with_gaps_and_a_raised_start_is_loaded_whole(written):
    """As compaction leaves it."""
    for offset in range(3):
        write(written, offset_record(offset, f"group-{offset}"))
    written.partition.log_guard.rearrange(lambda log: log.raise_log_start(1) is None)
    lead_anew(written)
    written.follow()
    written.load()
    written.confirm()
    assert written.committed("group-0") == [{}]
    assert written.committed("group-2") == [{"events": 2}]


@pytest.mark.parametrize(
    ("lost_in_epoch", "found"), [(-1, None), (1, None), (2, [7]), (3, [7]), (5, [7, 8])],
    ids=["no loss", "of an empty log", "before nobody wrote", "between the records", "in this epoch"],
)  # fmt: skip
def test_a_machine_is_notified_of_a_loss_between_the_records_found_and_those_since(
    coordinated, monkeypatch, lost_in_epoch, found
):
    replayed, notified = [], []
    monkeypatch.setattr(GroupMachine, "replay", lambda _, record: replayed.append(record.value.offset))
    monkeypatch.setattr(GroupMachine, "replay_loss", lambda _: notified.append(list(replayed)))
    for epoch, offset in ((1, 7), (3, 8)):
        coordinated.become(epoch=epoch)
        write(coordinated, offset_record(offset, group=f"g{offset}"))
        coordinated.become(leader=2, epoch=epoch + 1)
    coordinated.become(epoch=5, lost_in_epoch=lost_in_epoch)
    coordinated.follow()
    coordinated.load()
    assert replayed == [7, 8]
    assert notified == ([] if found is None else [found])


def damage(coordinated, at):
    """Flip a byte in the log's only segment."""
    (file,) = [path for path in coordinated.folder.rglob("*.log") if path.is_file()]
    data = bytearray(file.read_bytes())
    data[at] ^= 0xFF
    file.write_bytes(data)


def test_a_damaged_log_keeps_the_coordinator_loading_and_is_tried_again(written, caplog):
    write(written, offset_record(7))
    write(written, offset_record(8))
    lead_anew(written)
    written.follow()
    damage(written, -1)
    question = written.load()
    assert isinstance(question, Await)
    assert question.timeout_ms >= 1_000
    written.confirm()
    assert written.committed() == [LOADING]
    assert "cannot be read at offset" in caplog.text
    assert str(written.folder) in caplog.text
    assert "elect another replica" in caplog.text
    caplog.clear()
    written.clock.now_ms += question.timeout_ms
    written.load(times_out=True)
    assert "cannot be read at offset" in caplog.text
    assert shard_of(written).phase is Phase.loading


def test_a_bug_in_one_load_does_not_stop_the_others(written, caplog):
    def fail(record):
        raise KeyError("a bug")

    write(written, offset_record(7))
    lead_anew(written)
    written.follow()
    shard_of(written).machine = SimpleNamespace(replay=fail)
    written.load()
    assert "cannot load, and tries again" in caplog.text
    assert isinstance(written.load(), Await)
