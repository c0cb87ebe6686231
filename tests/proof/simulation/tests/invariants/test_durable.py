"""What is committed with ``log.flush.acks=fsync`` is on disks: the rule asks the simulated disk."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from simulation.disks.disk import SimulatedDisk
from simulation.invariants.durable import EVERYTHING, AcknowledgedIsSynced, durable_end
from simulation.invariants.invariant import Violation
from simulation.schedule import Process, Schedule
from simulation.truth import PartitionTruth
from sparklog.core.controller.state.znodes import Assignment
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, LeaderEpoch, TopicId, TopicPartition
from sparklog.records.envelope import build_envelope, split
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig

ONE, TWO = BrokerId(1), BrokerId(2)
TP = TopicPartition("quakes", 0)
ALONE = PartitionState(
    leader=ONE,
    leader_epoch=LeaderEpoch(0),
    isr=(ONE,),
    replicas=(ONE, TWO),
    isr_incarnations={ONE: 1, TWO: 1},
)
BOTH = replace(ALONE, isr=(ONE, TWO))


def a_log(disk=None, config=None):
    process = Process(Schedule(), "broker-1")
    mounted = (disk or SimulatedDisk()).mount(process)
    mounted.make_directory("/b/data")
    mounted.sync_directory("/b")
    return Log.open(
        "/b/data/quakes-0",
        TP,
        TopicId(int=1),
        config or LogConfig(),
        mounted,
        process,
        recovery_point=0,
        clean=True,
    )


def append(log, *offsets):
    for offset in offsets:
        batch = build_envelope(
            b"%d" % offset,
            attributes=0,
            record_count=1,
            last_offset_delta=0,
            base_timestamp_ms=1,
            max_timestamp_ms=1,
            base_offset=offset,
            leader_epoch=0,
        )
        log.append(batch, split(batch))


class Replicas:
    """Two replicas with four batches each; the leader commits them all."""

    def __init__(self):
        self.truth = PartitionTruth(TP, TopicId(int=1), assignment=Assignment((ONE, TWO)))
        self.rule = AcknowledgedIsSynced()
        self.logs = {}
        for broker in (ONE, TWO):
            log = self.logs[broker] = a_log()
            append(log, 0, 1, 2, 3)
            self.truth.view(broker).refresh(SimpleNamespace(log=log), is_thinned=False)

    def commit(self, state):
        self.truth.state = state
        leader = self.truth.view(ONE)
        self.truth.committed = list(leader.entries)
        self.rule.on_commit(self.truth, leader, leader.entries[2:])


@pytest.fixture
def replicas():
    return Replicas()


def test_a_leader_commits_what_it_has_synced_and_nothing_else(replicas):
    with pytest.raises(Violation, match=r"AcknowledgedIsSynced: quakes-0: broker 1 .* is below 2 only"):
        replicas.commit(ALONE)
    replicas.logs[ONE].flush()
    replicas.commit(ALONE)


def test_a_follower_in_sync_has_synced_it_too_unless_its_disk_was_struck(replicas):
    replicas.logs[ONE].flush()
    with pytest.raises(Violation, match=r"broker 2 has on its disk .* when broker 1 committed \[3\.\.3"):
        replicas.commit(BOTH)
    replicas.truth.tainted[TWO] = 1
    replicas.commit(BOTH)
    replicas.truth.tainted.clear()
    replicas.logs[TWO].flush()
    replicas.commit(BOTH)


def test_whoever_joins_has_synced_what_was_committed_without_it(replicas):
    replicas.logs[ONE].flush()
    replicas.commit(ALONE)
    with pytest.raises(Violation, match=r"broker 2 .* is below 0 only; .* when it was counted"):
        replicas.rule.on_state(replicas.truth, ALONE, BOTH)
    replicas.logs[TWO].flush()
    replicas.rule.on_state(replicas.truth, ALONE, BOTH)


def test_a_recovery_point_alone_does_not_make_a_batch_safe():
    log = a_log()
    append(log, 0, 1)
    log.flush()
    append(log, 2)
    log.recovery_point = log.log_end_offset
    assert durable_end(log, 0) == 2


def test_what_is_written_over_what_was_cut_is_not_safe_although_the_bytes_are_the_same():
    log = a_log()
    append(log, 0, 1, 2)
    log.flush()
    log.truncate_to(1)
    append(log, 1, 2)
    assert durable_end(log, 0) == 1
    log.flush()
    assert durable_end(log, 0) == EVERYTHING


def test_a_synced_segment_whose_name_was_not_synced_is_not_safe():
    log = a_log(config=LogConfig(segment_bytes=150))
    append(log, 0, 1)
    log.flush()
    append(log, 2, 3)
    for segment in log.segments:
        segment.file.fsync()
    assert durable_end(log, 0) == 2
    log.flush()
    assert durable_end(log, 0) == EVERYTHING


def test_nothing_is_safe_in_a_directory_whose_own_name_was_not_synced():
    disk = SimulatedDisk()
    log = a_log(disk)
    append(log, 0)
    log.segments[0].file.fsync()
    disk.journal.pop(log.directory, None)
    assert durable_end(log, 0) == 0
