"""One term of office over a ZooKeeper that does not always answer; no thread and no clock but the test's."""

import logging
from dataclasses import dataclass, field

import pytest

from sparklog.controller.candidate import Candidate
from sparklog.controller.term import DEFERRED_MAX, Term, TermEnded
from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.broker_commands import AllocateProducerIds
from sparklog.core.controller.commands.config_commands import ChangeConfigs, ConfigChange, SettingChange
from sparklog.core.controller.commands.controller_command import Command
from sparklog.core.controller.commands.topic_commands import CreateTopics, TopicToCreate
from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.incarnation import DirectoryIdentity
from sparklog.core.controller.state.log_ends import LogEnd
from sparklog.core.security.requester import Requester
from sparklog.model.cluster_facts import Broker, plaintext
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.kafka_numbers import BROKER_RESOURCE
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import Create, SetData
from sparklog.zookeeper.broker_registration import register_broker, withdraw_suspect

pytestmark = pytest.mark.integration


REQUESTER = Requester("User:alice", "10.0.0.7")


@dataclass
class ManualClock:
    now_ms: int = 0

    def monotonic_ms(self):
        return self.now_ms

    def wall_ms(self):
        return 1_700_000_000_000 + self.now_ms


@dataclass
class RecordingChannels:
    done: list = field(default_factory=list)
    ended: set = field(default_factory=set)
    """Brokers whose processes have ended, as their connections show."""

    def has_ended(self, broker, broker_epoch):
        return broker in self.ended

    def connect(self, broker):
        self.done.append(("connect", broker.id))

    def disconnect(self, broker, broker_epoch):
        self.done.append(("disconnect", broker))

    def send(self, send):
        self.done.append(send)

    def close(self):
        self.done.append("close")


@dataclass
class Office:
    """The term under test and what it did."""

    zookeeper: object
    clock: ManualClock = field(default_factory=ManualClock)
    channels: RecordingChannels = field(default_factory=RecordingChannels)
    wakes: list = field(default_factory=list)
    answers: list = field(default_factory=list)
    epochs: dict = field(default_factory=dict)
    losses: int = 0

    def __post_init__(self):
        for path in znodes.PERSISTENT_PATHS:
            self.zookeeper.ensure_path(path)
        for broker in (1, 2, 3):
            self.register(broker)
        node = znodes.encode_controller(znodes.ControllerNode("host", 1, 1, "test"))
        self.zookeeper.multi(
            [Create(znodes.CONTROLLER, node, ephemeral=True), Create(znodes.CONTROLLER_EPOCH, b"1")]
        )
        self.term = Term(
            zookeeper=self.zookeeper,
            generation=self.zookeeper.generation,
            session_id=self.zookeeper.session_id,
            epoch=1,
            epoch_version=0,
            config=BrokerConfig(),
            clock=self.clock,
            channels=self.channels,
            wake_at=self.wakes.append,
            on_loss=self.note_losses,
            holder="test",
        )
        self.term.begin()

    def note_losses(self, partitions):
        self.losses += partitions

    def register(self, broker, boot="boot"):
        address = Broker(BrokerId(broker), plaintext("host", 9000 + broker))
        identity = DirectoryIdentity(f"directory-{broker}")
        self.epochs[broker] = register_broker(
            self.zookeeper, address, [identity], boot_id=boot, host_id="host"
        )

    def expire(self, broker):
        self.zookeeper.delete(znodes.broker_path(BrokerId(broker)))

    def create(self, name="t"):
        topic = TopicToCreate(name, id=_topic_id(name), assignment={0: (BrokerId(1), BrokerId(2))})
        self.ask(CreateTopics((topic,), 0))

    def allocate(self, broker=1):
        request = AllocateProducerIds(BrokerId(broker), BrokerEpoch(self.epochs[broker]))
        self.ask(request)

    def report_log_end(self, broker, end_offset):
        """The broker answers the last roles that it was sent: its log of t-0 ends there, in epoch 0."""
        sends = [one for one in self.channels.done if isinstance(one, act.SendLeaderAndIsr)]
        send = [one for one in sends if one.broker == broker][-1]
        state, _ = self.state()
        ends = {TopicPartition("t", 0): LogEnd(state.leader_epoch, 0, end_offset)}
        self.term.push_answered(act.PushAnswer(send.push, send.broker, send.broker_epoch, {}, ends))

    def ask(self, request):
        self.term.command(Command(request, REQUESTER), self.answers.append)

    def state(self, name="t"):
        node = self.zookeeper._inner.get(znodes.state_path(name, 0))
        return znodes.decode_state(name, 0, node.data), node.stat.version


def _topic_id(name):
    import uuid

    return uuid.uuid5(uuid.NAMESPACE_OID, name)


@pytest.fixture
def office(flaky_zookeeper):
    return Office(flaky_zookeeper)


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_write_without_an_answer_happens_exactly_once(office, lost):
    office.create()
    office.zookeeper.lose_writes.append(lost)
    office.expire(1)
    office.term.brokers_changed()
    state, version = office.state()
    assert (state.leader, state.isr, state.leader_epoch, version) == (2, (2,), 1, 1)


@pytest.mark.bug("B37", "records", "A late write adds a replica to the ISR without its leader's knowledge.")
def test_a_write_that_is_still_under_way_when_all_was_read_again_never_happens(office):
    office.create()
    office.zookeeper.lose_writes.append("late")
    office.expire(1)
    office.term.brokers_changed()
    (outcome,) = office.zookeeper.let_late_writes_happen()
    assert outcome is not None
    assert (outcome.index, outcome.reason) == (0, "bad_version")
    state, version = office.state()
    assert (state.leader, state.isr, state.leader_epoch, version) == (2, (2,), 1, 1)


@pytest.mark.bug("B37")
def test_what_ends_late_writes_may_be_late_or_lost_itself(office):
    office.create()
    office.zookeeper.lose_writes += ["late", "late", "before", "after"]
    office.expire(1)
    office.term.brokers_changed()
    while office.zookeeper.lose_writes:
        office.term.tick()
    office.term.tick()
    refused = office.zookeeper.let_late_writes_happen()
    assert [one.index for one in refused] == [0, 0]
    office.expire(2)
    office.term.brokers_changed()
    assert office.state()[0].leader == -1


def test_a_late_write_that_happens_before_all_is_read_again_is_what_holds(office):
    office.create()
    office.zookeeper.lose_writes += ["late", "late"]
    office.expire(1)
    office.term.brokers_changed()
    first, second = office.zookeeper.let_late_writes_happen()
    assert (first, second) == (None, None)
    office.term.tick()
    state, version = office.state()
    assert (state.leader, state.isr, state.leader_epoch, version) == (2, (2,), 1, 1)
    assert office.term.epoch_version == 1


@pytest.mark.parametrize("lost", ["before", "after"])
def test_no_block_of_producer_ids_is_given_twice_over_lost_answers(office, lost):
    office.allocate()
    office.zookeeper.lose_writes.append(lost)
    office.allocate()
    office.allocate()
    firsts = [answer.first for answer in office.answers]
    assert len(set(firsts)) == 3


def test_facts_wait_in_order_while_zookeeper_is_away_and_are_told_when_it_is_back(office):
    office.create()
    office.zookeeper.is_away = True
    office.answers.clear()
    office.allocate(1)
    office.allocate(2)
    assert office.answers == []
    assert office.wakes, "it must look again by itself"
    office.zookeeper.is_away = False
    office.expire(1)
    office.term.tick()
    stale, second = office.answers
    assert stale.error == ErrorCode.stale_broker_epoch, "broker 1 died meanwhile, and this was seen first"
    assert (second.error, second.first) == (ErrorCode.none, 0)
    assert office.state()[0].leader == 2


def test_a_change_and_who_asked_for_it_are_logged_and_among_the_recent_events(office, caplog):
    caplog.set_level(logging.INFO)
    office.create("t")
    assert "User:alice at 10.0.0.7 asks to create topics 't'" in caplog.text
    assert "of User:alice at 10.0.0.7: CreateTopics" in office.term.recent_events()


def test_news_of_brokers_that_cannot_be_read_now_are_read_later(office):
    office.create()
    office.expire(1)
    office.zookeeper.is_away = True
    office.term.brokers_changed()
    office.term.retry()
    office.zookeeper.is_away = False
    office.term.retry()
    assert office.state()[0].leader == 2


def test_a_broker_that_is_down_takes_settings_once_zookeeper_confirms_that_it_registered(
    office,
):
    change = SettingChange("log.retention.ms", "set", "8")
    office.expire(1)
    office.term.brokers_changed()
    office.zookeeper.is_away = True
    resources = tuple(ConfigChange(BROKER_RESOURCE, name, (change,)) for name in ("1", "9"))
    office.ask(ChangeConfigs(resources))
    office.allocate(2)
    assert office.answers == []
    office.zookeeper.is_away = False
    office.term.retry()
    configs, block = office.answers
    assert [one.error for one in configs.resources] == [ErrorCode.none, ErrorCode.broker_id_not_registered]
    assert block.error == ErrorCode.none, "what came meanwhile is told after it"


def withdraw(office, broker):
    withdraw_suspect(office.zookeeper, BrokerId(broker), office.epochs[broker], f"directory-{broker}")


def end(office, broker):
    office.channels.ended.add(broker)
    office.expire(broker)


def fall_silent(office, broker):
    office.expire(broker)


@pytest.mark.parametrize("reading", ["of the brokers", "of everything"])
@pytest.mark.parametrize(("leave", "is_told"), [(withdraw, True), (end, True), (fall_silent, False)])
def test_brokers_are_told_of_one_that_left_whether_it_is_known_to_have_ended(office, leave, is_told, reading):
    epoch = office.epochs[1]
    leave(office, 1)
    office.channels.done.clear()
    if reading == "of everything":
        office.zookeeper.lose_writes.append("after")
        office.allocate(2)
    else:
        office.term.brokers_changed()
    updates = [one for one in office.channels.done if isinstance(one, act.SendUpdateMetadata)]
    assert {one.broker for one in updates} == {2, 3}
    assert {one.ended for one in updates} == {(epoch,) if is_told else ()}


def test_a_report_of_death_elects_before_anything_else_is_looked_at(office):
    office.create()
    office.channels.done.clear()
    office.term.broker_died(BrokerId(1), office.epochs[1])
    assert office.state()[0].leader == 2
    assert office.zookeeper.exists(znodes.broker_path(BrokerId(1))) is None
    done = office.channels.done
    told = next(one for one in done if isinstance(one, act.SendLeaderAndIsr))
    assert (told.broker, told.topics[0].partitions[0][1].leader) == (2, 2)
    assert done.index(("disconnect", 1)) < done.index(told)


def test_a_report_about_a_registration_that_was_not_read_yet_is_understood(office):
    office.create()
    office.register(1)
    office.term.broker_died(BrokerId(1), office.epochs[1])
    assert office.zookeeper.exists(znodes.broker_path(BrokerId(1))) is None
    assert office.state()[0].leader == 2


@pytest.mark.parametrize(("allowed", "losses"), [("true", 1), ("false", 0)])
def test_an_election_that_may_lose_records_is_counted(office, allowed, losses):
    configs = {"unclean.leader.election.enable": allowed}
    topic = TopicToCreate("t", id=_topic_id("t"), assignment={0: (BrokerId(1), BrokerId(2))}, configs=configs)
    office.ask(CreateTopics((topic,), 0))
    for broker in (1, 2):
        office.expire(broker)
        office.term.brokers_changed()
    assert office.losses == 0
    office.register(1)
    office.term.brokers_changed()
    assert (office.losses, office.state()[0].leader) == (0, -1), "it has not reported its log"
    office.report_log_end(1, end_offset=7)
    assert (office.losses, office.state()[0].leader) == (losses, 1 if losses else -1)


def test_a_lost_session_ends_the_term(office):
    office.zookeeper.lose_writes.append("expired")
    with pytest.raises(TermEnded, match="session"):
        office.allocate()


def test_a_newer_controller_epoch_ends_the_term_at_the_next_write(office):
    office.zookeeper.multi([SetData(znodes.CONTROLLER_EPOCH, b"2", 0)])
    with pytest.raises(TermEnded, match="another controller"):
        office.allocate()
    assert office.zookeeper.get(znodes.PRODUCER_ID_BLOCK) is None


def test_a_reload_first_makes_sure_that_the_office_is_still_ours(office):
    office.zookeeper.lose_writes.append("before")
    office.zookeeper._inner.delete(znodes.CONTROLLER)
    with pytest.raises(TermEnded, match="no longer ours"):
        office.allocate()


def test_an_office_that_was_taken_away_is_noticed_when_its_node_changes(office):
    office.term.check_office()
    office.zookeeper.delete(znodes.CONTROLLER)
    with pytest.raises(TermEnded, match="no longer ours"):
        office.term.check_office()


def test_whoever_waits_at_the_end_of_a_term_is_sent_to_the_next_controller(office):
    topic = TopicToCreate("t", id=_topic_id("t"), assignment={0: (BrokerId(1),)})
    office.ask(CreateTopics((topic,), 60_000))
    assert office.answers == []
    office.term.close()
    assert [one.error for one in office.answers[0].topics] == [ErrorCode.not_controller]
    assert office.channels.done[-1] == "close"


def test_a_creation_is_answered_at_its_deadline(office):
    topic = TopicToCreate("t", id=_topic_id("t"), assignment={0: (BrokerId(1),)})
    office.ask(CreateTopics((topic,), 5_000))
    assert 5_000 in office.wakes
    office.clock.now_ms = 5_000
    office.term.tick()
    assert office.answers[0].topics[0].error == ErrorCode.request_timed_out


def test_facts_that_wait_for_zookeeper_are_bounded(office):
    office.zookeeper.is_away = True
    office.term.brokers_changed()
    for _ in range(DEFERRED_MAX):
        office.term.brokers_changed()
    with pytest.raises(TermEnded, match="wait for ZooKeeper"):
        office.term.brokers_changed()


# ------------------------------------------------------------------------------------------- candidates


@dataclass
class ManualTimer:
    actions: list = field(default_factory=list)

    def after(self, delay_ms, action):
        self.actions.append(action)

    def fire(self):
        actions, self.actions = self.actions, []
        for action in actions:
            action()


@dataclass
class Race:
    """A candidate whose events run when the test says so."""

    zookeeper: object
    timer: ManualTimer = field(default_factory=ManualTimer)
    events: list = field(default_factory=list)
    channels: list = field(default_factory=list)

    def __post_init__(self):
        self.candidate = Candidate(
            zookeeper=self.zookeeper,
            node=znodes.ControllerNode("host", 1, 1, "test"),
            config=BrokerConfig(),
            clock=ManualClock(),
            timer=self.timer,
            submit=self.events.append,
            open_channels=self.open,
        )
        self.candidate.start()

    def open(self, epoch):
        self.channels.append(RecordingChannels())
        return self.channels[-1]

    def epoch(self):
        return int(self.zookeeper._inner.get(znodes.CONTROLLER_EPOCH).data)


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_claim_whose_answer_was_lost_ends_in_office(flaky_zookeeper, lost):
    flaky_zookeeper.lose_writes.append(lost)
    race = Race(flaky_zookeeper)
    assert not race.candidate.is_active
    race.timer.fire()
    race.events.pop(0)()
    assert race.candidate.is_active
    assert race.epoch() == (1 if lost == "before" else 2)


def test_a_failure_of_our_own_frees_the_office_and_runs_again_with_a_new_epoch(flaky_zookeeper):
    race = Race(flaky_zookeeper)
    race.candidate.fail(AssertionError("a bug"))
    assert not race.candidate.is_active
    assert flaky_zookeeper.get(znodes.CONTROLLER) is None
    assert race.channels[0].done == ["close"]
    race.timer.fire()
    race.events[-1]()
    assert race.candidate.is_active
    assert race.epoch() == 2


def test_state_that_cannot_be_understood_is_not_taken_for_absent(flaky_zookeeper):
    flaky_zookeeper.ensure_path(znodes.TOPICS)
    flaky_zookeeper.create(znodes.topic_path("t"), b"not ours")
    race = Race(flaky_zookeeper)
    assert not race.candidate.is_active
    assert "/brokers/topics/t" in race.candidate.failure
    assert flaky_zookeeper.get(znodes.CONTROLLER) is None, "a standby may do better"


def test_zookeeper_away_while_the_state_is_read_leaves_the_office_to_a_later_try(flaky_zookeeper):
    race = Race(flaky_zookeeper)
    race.candidate.close()
    again = Race(flaky_zookeeper)
    flaky_zookeeper.is_away = True
    again.candidate.fail(AssertionError("a bug"))
    assert not again.candidate.is_active
    flaky_zookeeper.is_away = False
    again.timer.fire()
    again.events[-1]()
    assert again.candidate.is_active


def test_a_closed_candidate_does_not_run_again(flaky_zookeeper):
    race = Race(flaky_zookeeper)
    race.candidate.close()
    race.timer.fire()
    for event in list(race.events):
        event()
    assert not race.candidate.is_active
    assert flaky_zookeeper.get(znodes.CONTROLLER) is None


def test_what_a_controller_knows_is_as_old_as_its_last_contact_with_zookeeper(flaky_zookeeper):
    race = Race(flaky_zookeeper)
    candidate, clock = race.candidate, race.candidate._clock
    assert candidate.zookeeper_away_ms == 0
    candidate._on_session("suspended")
    clock.now_ms += 30_000
    candidate._on_session("expired")
    clock.now_ms += 10_000
    assert candidate.zookeeper_away_ms == 40_000
    candidate._on_session("connected")
    assert candidate.zookeeper_away_ms == 0
