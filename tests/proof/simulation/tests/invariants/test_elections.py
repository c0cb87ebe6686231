"""Elections at a loss: which logs are compared, by what, and which a controller cannot know."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from simulation.invariants.elections import WAITS_MS, NoElectionLoses, ranks_of
from simulation.invariants.invariant import Violation
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import NO_LEADER, BrokerId, LeaderEpoch, TopicId, TopicPartition

BROKERS = tuple(BrokerId(number) for number in (1, 2, 3))
LEADERLESS = PartitionState(
    leader=NO_LEADER,
    leader_epoch=LeaderEpoch(5),
    isr=BROKERS[2:],
    replicas=BROKERS,
    isr_incarnations={BROKERS[2]: 4},
)


def a_log(broker, end, epoch=0, *, noted=(), known_from=0):
    """Its records, of one epoch, are there from ``known_from`` on; ``noted``: epochs without records."""
    epochs = [(epoch, 0)] if end else []
    log = SimpleNamespace(epochs=EpochHistory.of([*epochs, *noted]))
    entries = [Entry(offset, offset + 1, epoch, 1, 0, offset, 0) for offset in range(known_from, end)]
    return ReplicaView(broker, log=log, entries=entries, end_offset=end)


def a_partition(leader_epoch=5, *, is_offline=False):
    return SimpleNamespace(leader_epoch=leader_epoch, is_offline=is_offline)


class Scene:
    """Broker 3 was alone in the ISR, and its disk was emptied; brokers 1 and 2 have more, and are dead."""

    def __init__(self) -> None:
        self.truth = PartitionTruth(TopicPartition("quakes", 0), TopicId(int=1))
        self.truth.tainted = {BROKERS[2]: 4}
        self.lost_disks = {BROKERS[2]: 4}
        self.registered = {BROKERS[2]}
        self.now_ms = 0
        self.rule = NoElectionLoses(
            self.lost_disks, lambda broker: broker in self.registered, lambda: self.now_ms
        )
        for broker, end in zip(BROKERS, (7, 9, 0), strict=True):
            self.truth.views[broker] = a_log(broker, end)
        self.rule.on_state(self.truth, None, LEADERLESS)

    def tell(self, broker, partition=None) -> None:
        """It is alive, and knows of the epoch without a leader."""
        self.registered.add(broker)
        self.truth.view(broker).partition = a_partition() if partition is None else partition

    def elect(self, leader, before=LEADERLESS) -> None:
        epoch = LeaderEpoch(before.leader_epoch + 1)
        elected = replace(before, leader=leader, leader_epoch=epoch, isr=(leader,), lost_in_epoch=epoch)
        self.rule.on_state(self.truth, before, elected)


@pytest.fixture
def scene():
    return Scene()


def test_the_epoch_of_the_last_record_counts_and_no_note_of_a_leader():
    assert ranks_of(a_log(BROKERS[0], 9, 3, noted=[(7, 9)])) == ((3, 9), (3, 9))
    assert ranks_of(a_log(BROKERS[0], 0, noted=[(7, 0)])) == ((-1, 0), (-1, 0))
    assert ranks_of(ReplicaView(BROKERS[0])) == ((-1, 0), (-1, 0))


def test_of_what_is_in_a_store_alone_the_history_knows_the_epoch():
    assert ranks_of(a_log(BROKERS[0], 9, 3, noted=[(7, 9)], known_from=9)) == ((3, 9), (3, 9))


def test_a_log_without_its_records_may_count_as_that_of_the_leader_that_noted_its_epoch():
    gone = ReplicaView(BROKERS[0], log=SimpleNamespace(epochs=EpochHistory.of([(7, 9)])), end_offset=9)
    assert ranks_of(gone) == ((-1, 9), (7, 9))


def test_where_each_that_counts_lost_its_disk_the_greatest_of_all_leads_though_it_is_dead(scene):
    with pytest.raises(Violation, match=r"broker 3 was elected with .* \(-1, 0\); broker 1 has .* \(0, 7\)"):
        scene.elect(BROKERS[2])
    with pytest.raises(Violation, match=r"broker 1 was elected with .* \(0, 7\); broker 2 has .* \(0, 9\)"):
        scene.elect(BROKERS[0])
    scene.elect(BROKERS[1])


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(replace(LEADERLESS, isr_incarnations={BROKERS[2]: 5}), id="it was counted again"),
        pytest.param(
            replace(LEADERLESS, eligible=BROKERS[1:2], isr_incarnations=dict.fromkeys(BROKERS[1:], 4)),
            id="an eligible one did not",
        ),
    ],
)
def test_where_one_that_counts_kept_its_disk_the_dead_outside_do_not_count(scene, before):
    scene.truth.tainted[BROKERS[1]] = 4
    scene.truth.views[BROKERS[1]] = a_log(BROKERS[1], 0)
    scene.elect(BROKERS[2], before)


@pytest.mark.parametrize(
    ("partition", "counts"),
    [
        pytest.param(a_partition(), True, id="it was told"),
        pytest.param(a_partition(4), False, id="it was not told"),
        pytest.param(a_partition(is_offline=True), False, id="its log is offline"),
    ],
)
def test_a_live_replica_outside_counts_once_a_controller_must_know_it(scene, partition, counts):
    scene.lost_disks.clear()
    scene.tell(BROKERS[0], partition)
    if counts:
        with pytest.raises(Violation, match="broker 1 has one of"):
            scene.elect(BROKERS[2])
    else:
        scene.elect(BROKERS[2])


def test_a_replica_whose_session_is_over_does_not_count(scene):
    scene.lost_disks.clear()
    scene.tell(BROKERS[0])
    scene.registered.remove(BROKERS[0])
    scene.elect(BROKERS[2])


@pytest.mark.parametrize(
    ("demands", "waited_ms", "is_broken"),
    [
        pytest.param(0, 0, True, id="the topic allows it"),
        pytest.param(1, 0, False, id="somebody demands it: who has reported is unknown"),
        pytest.param(0, WAITS_MS, False, id="it has waited long enough"),
    ],
)
def test_an_allowed_election_takes_the_greatest_of_the_live_and_waits_for_nobody_else(
    scene, demands, waited_ms, is_broken
):
    scene.truth.was_allowed, scene.truth.demands, scene.now_ms = True, demands, waited_ms
    scene.elect(BROKERS[2])
    scene.rule.on_state(scene.truth, None, LEADERLESS)
    scene.now_ms += waited_ms
    scene.tell(BROKERS[0])
    if is_broken:
        with pytest.raises(Violation, match="broker 1 has one of"):
            scene.elect(BROKERS[2])
    else:
        scene.elect(BROKERS[2])
