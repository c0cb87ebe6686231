"""The witness: what it reads from ZooKeeper, whom it excuses, and whom it does not."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from simulation.clients.client import Workplace
from simulation.disks.disk import SimulatedDisk, Trouble
from simulation.invariants.invariant import Violation
from simulation.invariants.replication import rules_of_replication
from simulation.recorder import SentBatch
from simulation.schedule import Process, ProcessDied, Schedule, Tripwire
from simulation.story import Story
from simulation.strikes.atlas import Atlas
from simulation.truth import entry_of
from simulation.witness import Witness
from sparklog.core.controller.state.znodes import (
    Assignment,
    TopicNode,
    encode_configs,
    encode_state,
    encode_topic,
    state_path,
    topic_config_path,
    topic_path,
)
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, TopicId, TopicPartition
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import ANY_VERSION, SetData
from sparklog.records.envelope import build_envelope, parse_header, split
from sparklog.storage.log_config import LogConfig
from sparklog.storage.log_directory import LogDirectory
from sparklog.testing.memory_zookeeper import ZooKeeperTree

BROKERS = (BrokerId(1), BrokerId(2), BrokerId(3))
TP = TopicPartition("quakes", 0)
FIRST = PartitionState(
    leader=BROKERS[0],
    leader_epoch=LeaderEpoch(0),
    isr=BROKERS,
    replicas=BROKERS,
    isr_incarnations=dict.fromkeys(BROKERS, 4),
)
AT_A_LOSS = replace(
    FIRST,
    leader_epoch=LeaderEpoch(1),
    isr=BROKERS[:1],
    isr_incarnations={BROKERS[0]: 5},
    lost_in_epoch=LeaderEpoch(1),
)


class Scene:
    """ZooKeeper with one topic, and its witness."""

    def __init__(self, **settings: str) -> None:
        self.tree = ZooKeeperTree()
        self._session = self.tree.open_session()
        config = BrokerConfig.parse({name.replace("_", "."): value for name, value in settings.items()})
        self.witness = Witness(
            Story(Schedule()), self.tree, config, (TP.topic,), invariants=rules_of_replication()
        )  # states here are sketches
        self._put_assignment(BROKERS)

    def assign(self, *brokers: BrokerId) -> None:
        self._put_assignment(brokers)
        self.witness.look_at_zookeeper()

    def _put_assignment(self, brokers: tuple[BrokerId, ...]) -> None:
        node = TopicNode(TopicId(int=1), (Assignment(brokers),))
        self._put(topic_path(TP.topic), encode_topic(node))

    def write(self, state: PartitionState) -> None:
        self._put(state_path(*TP), encode_state(state, ControllerEpoch(1)))
        self.witness.look_at_zookeeper()

    def configure(self, **settings: str) -> None:
        configs = {name.replace("_", "."): value for name, value in settings.items()}
        self._put(topic_config_path(TP.topic), encode_configs(configs))
        self.witness.look_at_zookeeper()

    def cut_power(self, *brokers: BrokerId, incarnation: int = 4) -> None:
        for broker in brokers:
            self.witness.excuses.taint(broker, incarnation)

    @property
    def tainted(self) -> set[BrokerId]:
        return set(self.witness.truths[TP].tainted)

    def _put(self, path: str, data: bytes) -> None:
        self.tree.ensure_path(self._session, path)
        self.tree.apply(self._session, [SetData(path, data, ANY_VERSION)])


@pytest.fixture
def scene():
    return Scene()


def test_a_partition_made_after_the_power_of_all_was_cut_may_be_elected_at_a_loss(scene):
    scene.cut_power(*BROKERS)
    scene.write(FIRST)
    assert scene.tainted == set(BROKERS)
    scene.write(AT_A_LOSS)
    assert scene.tainted == set(BROKERS[1:])


@pytest.mark.parametrize(
    ("acks", "has_damage", "allows_unclean", "is_broken"),
    [
        pytest.param("fsync", False, False, True, id="every record was on disk"),
        pytest.param("written", False, False, False, id="records were in memory"),
        pytest.param("fsync", True, False, False, id="a disk was damaged"),
        pytest.param("fsync", False, True, False, id="the topic allows it"),
    ],
)
def test_after_a_power_cut_of_all_an_election_loses_nothing_that_was_synced(
    acks, has_damage, allows_unclean, is_broken
):
    scene = Scene(log_flush_acks=acks)
    scene.write(FIRST)
    truth = scene.witness.truths[TP]
    truth.committed = [entry_of(parse_header(a_batch(0)))]
    scene.cut_power(*BROKERS)
    scene.witness.excuses.has_damage, truth.allows_unclean = has_damage, allows_unclean
    if is_broken:
        with pytest.raises(Violation, match=r"SyncedIsNeverLost: .* the election of broker 1 lost \[0\.\.0"):
            scene.write(AT_A_LOSS)
    else:
        scene.write(AT_A_LOSS)
        assert sorted(truth.lost) == [0]


def test_a_partition_that_counts_a_later_incarnation_may_not(scene):
    scene.cut_power(*BROKERS, incarnation=3)
    scene.write(FIRST)
    assert scene.tainted == set()
    with pytest.raises(Violation, match=r"NoElectionLoses: .*brokers \[1, 2, 3\] had lost nothing"):
        scene.write(AT_A_LOSS)


def test_where_a_topic_forbids_unclean_elections_again_none_may_lose_any_more(scene):
    scene.write(FIRST)
    scene.configure(unclean_leader_election_enable="true")
    scene.write(AT_A_LOSS)
    scene.configure(unclean_leader_election_enable="false")
    again = replace(AT_A_LOSS, leader_epoch=LeaderEpoch(2), lost_in_epoch=LeaderEpoch(2))
    with pytest.raises(Violation, match=r"NoElectionLoses: .*brokers \[1\] had lost nothing"):
        scene.write(again)


def test_a_demanded_election_may_lose_and_so_may_a_late_copy_of_the_demand(scene):
    scene.write(FIRST)
    truth = scene.witness.truths[TP]
    truth.demands = 1
    scene.write(AT_A_LOSS)
    truth.demands, truth.demanded_until_ms = 0, 5_000
    states = [
        replace(AT_A_LOSS, leader_epoch=LeaderEpoch(epoch), lost_in_epoch=LeaderEpoch(epoch))
        for epoch in (2, 3)
    ]
    scene.witness.story.schedule.now_us = 5_000_000
    scene.write(states[0])
    scene.witness.story.schedule.now_us = 5_001_000
    with pytest.raises(Violation, match=r"NoElectionLoses: .*brokers \[1\] had lost nothing"):
        scene.write(states[1])


def test_one_broker_whose_power_was_not_cut_forbids_an_election_at_a_loss(scene):
    scene.cut_power(*BROKERS[:2])
    scene.write(FIRST)
    with pytest.raises(Violation, match=r"brokers \[3\] had lost nothing"):
        scene.write(AT_A_LOSS)


def test_a_partition_that_was_there_when_the_power_was_cut_excuses_its_replicas_alike(scene):
    scene.write(FIRST)
    scene.cut_power(*BROKERS, BrokerId(4))
    assert scene.tainted == set(BROKERS)
    scene.write(AT_A_LOSS)


def test_a_counted_replica_with_a_rotten_batch_is_excused_until_a_later_one_has_none(scene):
    rotten = {BROKERS[1]}
    scene.witness.excuses.rots = lambda broker, partition: broker in rotten
    scene.write(FIRST)
    scene.cut_power(BROKERS[1])
    for incarnation, is_excused in ((5, True), (5, True), (6, False)):
        scene.write(replace(FIRST, isr_incarnations=dict.fromkeys(BROKERS, incarnation)))
        assert (BROKERS[1] in scene.tainted) is is_excused
        rotten.clear()


def test_a_replica_on_a_disk_that_failed_an_fsync_may_be_elected_at_a_loss(
    scene,
):
    scene.write(FIRST)
    for broker in BROKERS:
        scene.witness.excuses.distrust(broker, [TP], 4)
    assert scene.tainted == set(), "it has lost nothing"
    scene.write(AT_A_LOSS)
    counted = replace(AT_A_LOSS, leader_epoch=LeaderEpoch(2), lost_in_epoch=LeaderEpoch(2))
    with pytest.raises(Violation, match=r"brokers \[1\] had lost nothing"):
        scene.write(counted)


def test_a_member_counted_over_a_restart_is_excused_for_its_offline_directory(scene):
    """Its failure may be told of only then, and proves nothing of the start after that."""
    scene.write(FIRST)
    for broker in BROKERS:
        scene.witness.excuses.distrust(broker, [TP], 4)
    stayed = replace(FIRST, leader_epoch=LeaderEpoch(1), isr_incarnations=dict.fromkeys(BROKERS, 5))
    scene.write(stayed)
    scene.write(replace(AT_A_LOSS, leader_epoch=LeaderEpoch(2), lost_in_epoch=LeaderEpoch(2)))


def test_a_replica_in_another_directory_than_that_of_a_failed_fsync_may_not(scene):
    scene.write(FIRST)
    for broker in BROKERS:
        scene.witness.excuses.distrust(broker, [], 4)
    with pytest.raises(Violation, match=r"brokers \[1, 2, 3\] had lost nothing"):
        scene.write(AT_A_LOSS)


def test_a_replica_that_was_removed_while_it_was_down_is_excused_until_its_log_is_gone(scene):
    """It may be added again with what its power cut left of that; seed 231291."""
    scene.write(FIRST)
    replica = Replica(scene.witness)
    replica.start()
    scene.cut_power(*BROKERS[:2])
    truth = scene.witness.truths[TP]
    scene.assign(BROKERS[2])
    assert scene.tainted == {BROKERS[0]}, "the other one has no log here"
    scene.witness._gone(truth, truth.view(BROKERS[0]))
    assert scene.tainted == set()


@pytest.mark.parametrize(("offline", "is_gone"), [("/data", False), ("/data-2", True)])
def test_a_replica_that_a_broker_lacks_may_be_in_its_offline_directory_only(scene, offline, is_gone):
    """Else the rule of what a power cut spares asks for a log that was deleted before it; seed 511227."""
    scene.write(FIRST)
    Replica(scene.witness).start()
    view = scene.witness.truths[TP].view(BROKERS[0])
    without_it = SimpleNamespace(get=lambda topic_partition: None)
    scene.witness.look_at(BROKERS[0], without_it, SimpleNamespace(offline=[offline]))
    assert (view.log is None) is is_gone


def test_a_replica_is_looked_at_beside_a_change_of_another_one_but_not_within_its_own(scene, monkeypatch):
    """Clients see what a broker did before it stood still in the middle of a step; seeds 804, 942."""
    scene.write(FIRST)
    Replica(scene.witness).start()
    view, lock, looked = scene.witness.truths[TP].view(BROKERS[0]), Tripwire(), []
    monkeypatch.setattr(Witness, "_changed", lambda self, truth, broker_id, partition: looked.append(1))
    partition = SimpleNamespace(
        topic_id=TopicId(int=1),
        log=view.log,
        leader_epoch=view.leader_epoch,
        is_offline=False,
        log_guard=SimpleNamespace(lock=lock),
        _replica=SimpleNamespace(marks=SimpleNamespace(high_watermark=8), leader_epoch=0, leader=None),
    )
    replicas = SimpleNamespace(get=lambda topic_partition: partition)
    with lock:
        scene.witness.look_beside(BROKERS[0], replicas)
    assert looked == []
    for _ in range(2):
        scene.witness.look_beside(BROKERS[0], replicas)
    assert looked == [1]


@pytest.mark.parametrize(
    ("befalls", "expected"),
    [
        pytest.param("nothing", 10, id="a power cut alone"),
        pytest.param("rot", 0, id="the next start finds the rot that nobody has met before, seed 700719"),
        pytest.param("wipe", 0, id="its disk was replaced before, seed 27"),
    ],
)
def test_what_was_synced_is_expected_after_a_power_cut_unless_it_was_damaged_before(scene, befalls, expected):
    scene.write(FIRST)
    replica = Replica(scene.witness)
    replica.start().logs[TP].flush()
    scene.witness.excuses.rots = lambda broker, partition: befalls == "rot"
    if befalls == "wipe":
        replica.disk.wipe()
    scene.witness.excuses.expect_what_was_synced(BROKERS[0])
    assert len(scene.witness.truths[TP].view(BROKERS[0]).synced) == expected


def test_a_removed_replica_that_loses_power_before_it_knows_is_excused(scene):
    scene.write(FIRST)
    Replica(scene.witness).start()
    scene.assign(BROKERS[2])
    scene.cut_power(*BROKERS[:2])
    assert scene.tainted == {BROKERS[0]}
    scene.assign(*BROKERS)
    assert scene.tainted == {BROKERS[0]}


def test_a_doomed_entry_names_the_directory_and_the_replicas_that_may_suffer(scene):
    scene.write(FIRST)
    disk = SimulatedDisk({path: {} for path in ("/b/one/quakes-0", "/b/two/other-0")})
    machine = SimpleNamespace(broker_id=BROKERS[0], disk=disk)
    atlas = Atlas(None, scene.witness, scene.tree, None, {})
    disk.failed = {"/b/two"}
    atlas.distrust_what_is_doomed(machine)
    atlas.taint_what_is_doomed(machine)
    assert (scene.witness.truths[TP].distrusted, scene.tainted) == ({}, set())
    disk.failed = {"/b/one"}
    atlas.distrust_what_is_doomed(machine)
    atlas.taint_what_is_doomed(machine)
    assert scene.witness.truths[TP].distrusted.keys() == scene.tainted == {BROKERS[0]}


def a_batch(offset: int) -> bytes:
    return build_envelope(
        b"%d" % offset,
        attributes=0,
        record_count=1,
        last_offset_delta=0,
        base_timestamp_ms=1,
        max_timestamp_ms=1,
        base_offset=offset,
        leader_epoch=0,
    )


class Replica:
    """A broker with one log, of ten batches; it knows of seven that they are committed. And its witness."""

    def __init__(self, witness: Witness) -> None:
        witness.be_silent()
        witness.remembers.checkpoints_rot = False  # of all rules this one speaks
        self.disk = SimulatedDisk()
        self._witness = witness
        directory = self._open()
        log = directory.create_log(TP, TopicId(int=1), LogConfig())
        for offset in range(10):
            batch = a_batch(offset)
            log.append(batch, split(batch))
        directory.write_high_watermarks({TP: 7})

    def start(self, *, leads_in: int | None = None) -> LogDirectory:
        """After the last process died; the witness looks at what the next one finds."""
        directory = self._open()
        self.change(directory, leads_in=leads_in)
        return directory

    def change(
        self, directory: LogDirectory, *, leads_in: int | None = None, is_offline: bool = False
    ) -> None:
        """The witness looks at it; without ``leads_in`` it follows in epoch 0."""
        log = directory.logs[TP]
        self._witness._changed(
            self._witness.truths[TP],
            BROKERS[0],
            SimpleNamespace(
                log=log,
                is_offline=is_offline,
                is_leader=leads_in is not None,
                awaits_history=False,
                leader_epoch=leads_in or 0,
                log_end_offset=log.log_end_offset,
                high_watermark=directory.read_high_watermarks().get(TP, 0),
            ),
        )

    def _open(self) -> LogDirectory:
        self.disk.lock_holders.clear()
        self._process = Process(Schedule(), "broker-1")
        mounted = self.disk.mount(self._process)
        directory = LogDirectory.open("/data", 1, "c1", mounted, self._process, boot_id="one")
        directory.load_logs(lambda topic: LogConfig())
        return directory

    def kill_in_write(self, number: int) -> None:
        def die() -> None:
            self._process.kill()
            raise ProcessDied("broker-1")

        self.disk.trouble = Trouble(number, die)


def test_who_dies_before_it_throws_its_log_away_may_know_nothing_of_what_was_committed(scene):
    scene.write(FIRST)
    replica = Replica(scene.witness)
    log = replica.start().logs[TP]
    replica.kill_in_write(2)
    with pytest.raises(ProcessDied):
        log.truncate_fully_and_start_at(30)
    directory = replica.start()
    assert directory.read_high_watermarks() == {TP: 0}
    assert directory.logs[TP].log_end_offset == 10, "nothing was cut yet"


def test_who_dies_before_a_cut_of_what_is_not_committed_may_not(scene):
    scene.write(FIRST)
    replica = Replica(scene.witness)
    directory = replica.start()
    directory.write_high_watermarks({TP: 6})
    replica.kill_in_write(1)
    with pytest.raises(ProcessDied):
        directory.logs[TP].truncate_to(8)
    with pytest.raises(Violation, match=r"starts with high watermark 6, .* it knew 7"):
        replica.start()


@pytest.mark.parametrize(("allows_unclean", "lost"), [(True, [5, 6]), (False, [])])
def test_what_the_elected_cuts_before_it_hears_of_its_unclean_election_was_lost_by_that(
    scene, allows_unclean, lost
):
    """The leader before had told it to; seed 88948."""
    scene.write(FIRST)
    replica = Replica(scene.witness)
    directory = replica.start()
    replica.change(directory, leads_in=0)
    truth = scene.witness.truths[TP]
    assert truth.committed_end == 7
    truth.allows_unclean = allows_unclean
    scene.write(AT_A_LOSS)
    truth.leaders[AT_A_LOSS.leader_epoch] = AT_A_LOSS.leader
    assert truth.committed_end == 7, "the elected has all of it"
    directory.logs[TP].truncate_to(5)
    replica.change(directory)
    assert sorted(truth.lost) == lost
    assert truth.committed_end == 7 - len(lost)


def elected_at_a_loss(scene):
    """It led in epoch 0, up to 7, and has not heard yet that an unclean election made it lead again."""
    scene.write(FIRST)
    replica = Replica(scene.witness)
    directory = replica.start()
    replica.change(directory, leads_in=0)
    truth = scene.witness.truths[TP]
    truth.allows_unclean = True
    scene.write(AT_A_LOSS)
    truth.leaders[AT_A_LOSS.leader_epoch] = AT_A_LOSS.leader
    return replica, directory, truth


def test_a_replica_killed_during_such_a_cut_lost_by_that_election_what_it_lacks(scene):
    """Its disk was full when it began anew; seed 503195."""
    replica, directory, truth = elected_at_a_loss(scene)
    directory.logs[TP].truncate_to(5)
    replica.start()
    assert (sorted(truth.lost), truth.committed_end) == ([5, 6], 5)


def test_what_a_start_lacks_of_who_has_led_since_its_unclean_election_is_not_excused(scene):
    replica, directory, truth = elected_at_a_loss(scene)
    replica.change(directory, leads_in=AT_A_LOSS.leader_epoch)
    directory.logs[TP].truncate_to(5)
    replica.start()
    assert (truth.lost, truth.committed_end) == ({}, 7)


def test_what_the_elected_lacks_when_it_leads_is_not_excused(scene):
    replica, directory, truth = elected_at_a_loss(scene)
    directory.logs[TP].truncate_to(5)
    replica.change(directory, leads_in=1)
    assert (truth.lost, truth.committed_end) == ({}, 7)


@pytest.mark.parametrize(("lost", "committed"), [([4, 5, 6], [0, 1, 2, 3]), ([], [0, 1, 2, 3, 4, 5, 6])])
def test_what_an_election_lost_and_the_next_leader_has_removed_is_not_committed_again(scene, lost, committed):
    """Seed 103381. What was never lost is, though the leader may remove it in the same moment."""
    scene.write(FIRST)
    replica = Replica(scene.witness)
    directory = replica.start()
    replica.change(directory)
    directory.logs[TP].raise_log_start(7)
    truth = scene.witness.truths[TP]
    truth.lost = {one.base_offset: [one] for one in truth.view(BROKERS[0]).entries if one.base_offset in lost}
    replica.change(directory, leads_in=1)
    assert [one.base_offset for one in truth.committed] == committed


@pytest.mark.parametrize(
    ("leader", "committed_end"), [(BROKERS[0], 9), (BROKERS[1], 7)], ids=["leads", "follows"]
)
def test_what_a_leader_commits_in_the_step_in_which_its_disk_fails_is_committed(scene, leader, committed_end):
    """Its followers may have been answered with the high watermark by then; seed 230 of an earlier plan."""
    scene.write(FIRST)
    replica = Replica(scene.witness)
    directory = replica.start(leads_in=0)
    scene.witness.truths[TP].state = replace(FIRST, leader=leader)
    directory.write_high_watermarks({TP: 9})
    replica.change(directory, is_offline=True)
    assert scene.witness.truths[TP].committed_end == committed_end


def test_a_send_is_recorded_with_the_epoch_in_which_a_leader_appended_it(scene):
    """A producer may believe in a later one, while one that is deaf to controllers answers; seed 122785."""
    scene.write(FIRST)
    Replica(scene.witness).start(leads_in=0)
    truth, recorder = scene.witness.truths[TP], scene.witness.recorder
    sent = truth.view(BROKERS[0]).entries[3]._replace(base_offset=0, leader_epoch=-1)
    place = Workplace(recorder.schedule, None, scene.witness, None, (), 1, recorder, None)
    batches = [SentBatch("p", "1", TP, 1, False, 0, 1, one) for one in (sent, sent._replace(crc=1))]
    for batch in batches:
        place.acknowledged(batch, 3)
    assert [batch.outcome for batch in batches] == ["ok", "ok"]
    assert [batch.leader_epoch for batch in batches] == [0, -1]


def test_of_two_leaders_that_appended_a_batch_the_one_in_the_earlier_epoch_counts(scene):
    scene.write(FIRST)
    truth = scene.witness.truths[TP]
    first = entry_of(parse_header(a_batch(3)))
    for epoch, counted in ((5, 5), (2, 2), (7, 2)):
        truth.note_appended([first._replace(leader_epoch=epoch)])
        assert truth.epoch_of(first) == counted
