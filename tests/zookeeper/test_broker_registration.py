import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.incarnation import DirectoryIdentity, StoredIncarnation, mark_suspect
from sparklog.model.cluster_facts import Broker, plaintext
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId
from sparklog.model.zookeeper import ConnectionLost, MultiFailed, Operation, SessionExpired, Stat, ZooKeeper
from sparklog.zookeeper.broker_registration import (
    BrokerIdInUse,
    read_or_create_cluster_id,
    read_suspect,
    register_broker,
    report_suspect,
    withdraw_suspect,
)
from sparklog.zookeeper.kazoo_adapter import KazooZooKeeper

pytestmark = pytest.mark.integration

WAIT_S = 60
BROKER = Broker(id=BrokerId(1), endpoints=plaintext("10.0.0.1", 9092), rack="a")
DIRECTORY = DirectoryIdentity("directory-1")
OTHER_DIRECTORY = DirectoryIdentity("directory-2")
LOG = (TopicId(int=1), 0)
BOOT, HOST = "boot-1", "host-1"

NewSession = Callable[[], KazooZooKeeper]


@pytest.fixture
def new_session(zookeeper_address: str) -> Iterator[NewSession]:
    """Opens sessions that stay until the test ends, as those of killed processes do."""
    clients: list[KazooZooKeeper] = []

    def open_session() -> KazooZooKeeper:
        clients.append(KazooZooKeeper(zookeeper_address, 6_000).start(15_000))
        return clients[-1]

    yield open_session
    for client in clients:
        client.close()


def register(
    zookeeper: ZooKeeper,
    *directories: DirectoryIdentity,
    broker: Broker = BROKER,
    boot: str = BOOT,
    host: str = HOST,
) -> BrokerEpoch:
    return register_broker(zookeeper, broker, directories or (DIRECTORY,), boot, host, timestamp_ms=7)


def stored(zookeeper: ZooKeeper) -> StoredIncarnation:
    node = zookeeper.get(znodes.incarnation_path(BROKER.id))
    assert node is not None
    return znodes.decode_incarnation(BROKER.id, node.data, node.stat.version, node.stat.mzxid)


def alive(zookeeper: ZooKeeper) -> tuple[Broker, Stat]:
    node = zookeeper.get(znodes.broker_path(BROKER.id))
    assert node is not None
    return znodes.decode_broker(BROKER.id, node.data, BrokerEpoch(node.stat.czxid)), node.stat


class Relay:
    """The port, with what happens around a multi under the test's control."""

    def __init__(self, zookeeper: KazooZooKeeper, around: Callable[[Callable[[], object]], None]) -> None:
        self._zookeeper = zookeeper
        self._around = [around]
        self.generation = zookeeper.generation

    def __getattr__(self, name: str) -> object:
        return getattr(self._zookeeper, name)

    def multi(self, operations: Sequence[Operation], *, generation: int | None = None) -> list[Stat | None]:
        def send() -> list[Stat | None]:
            return self._zookeeper.multi(operations, generation=generation)

        if self._around:
            self._around.pop()(send)
        return send()


# ----------------------------------------------------------------------------------------------- first time


def test_a_first_registration_makes_the_broker_alive_with_incarnation_zero(
    zookeeper: KazooZooKeeper,
) -> None:
    epoch = register(zookeeper)
    broker, stat = alive(zookeeper)
    incarnation = stored(zookeeper)
    assert broker == replace(BROKER, epoch=epoch)
    assert stat.ephemeral_owner == zookeeper.session_id
    assert (incarnation.number, incarnation.broker_epoch) == (0, epoch)
    assert incarnation.record.directories == ("directory-1",)
    assert incarnation.record.intact_since == 0


def test_every_registration_raises_the_incarnation_whose_mzxid_is_the_broker_epoch(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    epochs = [register(zookeeper)]
    for number in (1, 2, 3):
        epochs.append(register(new_session()))
        stat = zookeeper.exists(znodes.incarnation_path(BROKER.id))
        assert stat is not None
        assert (stat.version, stat.mzxid) == (number, epochs[-1])
        assert alive(zookeeper)[1].czxid == epochs[-1]
    assert epochs == sorted(set(epochs))


# ------------------------------------------------------------------------------------------ who may come back


def test_the_same_directory_comes_back_at_once_over_its_own_old_node(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    killed = new_session()
    old = register(killed)
    new = register(zookeeper, broker=replace(BROKER, endpoints=plaintext("10.0.0.1", 9093)))
    assert new > old
    broker, stat = alive(zookeeper)
    assert (broker.endpoints["PLAINTEXT"].port, stat.ephemeral_owner) == (9093, zookeeper.session_id)
    assert stored(zookeeper).record.proves(0)  # same directory, same boot: everything is still there
    killed.close()  # the old session's end takes nothing with it that is ours
    assert alive(zookeeper)[0].epoch == new


def test_one_session_may_register_again(zookeeper: KazooZooKeeper) -> None:
    assert register(zookeeper) < register(zookeeper)
    assert stored(zookeeper).number == 1


@pytest.mark.parametrize(
    ("directory", "boot", "host"),
    [
        (OTHER_DIRECTORY, BOOT, HOST),
        (DIRECTORY, "boot-2", HOST),
        (DIRECTORY, BOOT, "host-2"),
    ],
)
def test_a_foreign_broker_is_refused_while_the_holder_lives_and_told_who_it_is(
    zookeeper: KazooZooKeeper, new_session: NewSession, directory: DirectoryIdentity, boot: str, host: str
) -> None:
    epoch = register(new_session())
    before = stored(zookeeper)
    with pytest.raises(BrokerIdInUse, match=rf"broker id 1 is in use by 10.0.0.1:9092 \(epoch {epoch}\)"):
        register(zookeeper, directory, boot=boot, host=host)
    assert alive(zookeeper)[0].epoch == epoch
    assert stored(zookeeper) == before


def test_a_node_without_an_incarnation_is_foreign(zookeeper: KazooZooKeeper, new_session: NewSession) -> None:
    holder = new_session()
    holder.ensure_path(znodes.BROKER_IDS)
    holder.create(znodes.broker_path(BROKER.id), znodes.encode_broker(BROKER), ephemeral=True)
    with pytest.raises(BrokerIdInUse):
        register(zookeeper)


def test_a_dead_holder_is_replaced_by_anybody_who_then_proves_nothing(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    dead = new_session()
    old = register(dead)
    dead.close()
    assert register(zookeeper, OTHER_DIRECTORY) > old
    incarnation = stored(zookeeper)
    assert incarnation.number == 1
    assert not incarnation.record.proves(0)


# -------------------------------------------------------------------------------------- what a restart proves


def test_a_clean_stop_proves_the_log_over_a_reboot(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    first = new_session()
    epoch = register(first)
    first.close()
    register(zookeeper, replace(DIRECTORY, clean_epoch=epoch), boot="boot-2")
    assert stored(zookeeper).record.clean
    assert stored(zookeeper).record.proves(0)


def test_a_power_cut_proves_nothing(zookeeper: KazooZooKeeper, new_session: NewSession) -> None:
    first = new_session()
    register(first)
    first.close()
    register(zookeeper, boot="boot-2")
    assert not stored(zookeeper).record.proves(0)
    assert stored(zookeeper).record.proves(1)


def test_a_directory_marked_suspect_comes_back_at_once_but_proves_nothing(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    epoch = register(new_session())
    marked = mark_suspect(stored(zookeeper), DIRECTORY.uuid)
    zookeeper.set(znodes.incarnation_path(BROKER.id), znodes.encode_incarnation(marked), 0)
    assert stored(zookeeper).broker_epoch == epoch  # the rewrite kept it
    assert register(zookeeper) > epoch
    assert stored(zookeeper).number == 2
    assert not stored(zookeeper).record.proves(1)


@pytest.mark.bug("B51")
def test_a_broker_whose_fsync_failed_withdraws_and_marks_its_directory_at_once(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    session = new_session()
    epoch = register(session)
    withdraw_suspect(session, BROKER.id, epoch, DIRECTORY.uuid)
    assert session.exists(znodes.broker_path(BROKER.id)) is None
    assert stored(zookeeper).record.suspect == (DIRECTORY.uuid,)
    withdraw_suspect(session, BROKER.id, epoch, DIRECTORY.uuid)  # its answer was lost, say
    assert stored(zookeeper).number == 1
    register(zookeeper)
    assert not stored(zookeeper).record.proves(1)


@pytest.mark.bug("B29")
def test_a_broker_that_goes_on_reports_a_directory_and_is_still_the_same_incarnation(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    spared = replace(OTHER_DIRECTORY, logs=frozenset({LOG}))
    epoch = register(new_session(), DIRECTORY, spared)
    before = stored(zookeeper)
    for _ in range(2):  # its answer was lost, say
        report_suspect(zookeeper, BROKER.id, DIRECTORY.uuid, epoch)
    assert stored(zookeeper) == before
    assert read_suspect(zookeeper, BROKER.id) == {DIRECTORY.uuid}
    register(new_session(), DIRECTORY, spared)
    assert not stored(zookeeper).record.proves(0)
    assert stored(zookeeper).record.proves(0, LOG), "it is in the other directory"
    assert read_suspect(zookeeper, BROKER.id) == set()
    register(new_session(), DIRECTORY, spared)
    assert stored(zookeeper).record.proves(1), "a report is heard once"


@pytest.mark.bug("B39")
def test_a_report_stays_until_its_directory_is_back(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    epoch = register(new_session(), DIRECTORY, OTHER_DIRECTORY)
    report_suspect(zookeeper, BROKER.id, DIRECTORY.uuid, epoch)
    for _ in range(2):
        register_broker(new_session(), BROKER, [OTHER_DIRECTORY], BOOT, HOST, offline_directories=1)
        assert read_suspect(zookeeper, BROKER.id) == {DIRECTORY.uuid}
    register(new_session(), DIRECTORY, OTHER_DIRECTORY)
    assert read_suspect(zookeeper, BROKER.id) == set()


def test_a_report_that_comes_while_the_next_start_registers_is_heard(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    first = new_session()
    epoch = register(first)

    def report_first(_send: Callable[[], object]) -> None:
        report_suspect(first, BROKER.id, DIRECTORY.uuid, epoch)

    register(Relay(zookeeper, report_first))
    assert stored(zookeeper).number == 1
    assert not stored(zookeeper).record.proves(0)


def test_a_report_of_an_earlier_incarnation_changes_nothing(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    epoch = register(new_session())
    register(zookeeper)
    report_suspect(zookeeper, BROKER.id, DIRECTORY.uuid, epoch)
    assert read_suspect(zookeeper, BROKER.id) == set()


def test_a_mark_that_comes_after_the_next_registration_changes_nothing(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    epoch = register(new_session())
    register(zookeeper)
    withdraw_suspect(zookeeper, BROKER.id, epoch, DIRECTORY.uuid)
    assert stored(zookeeper).record.suspect == ()
    assert zookeeper.exists(znodes.broker_path(BROKER.id)) is not None


# ----------------------------------------------------------------------------------------- races and failures


def test_of_brokers_that_race_for_an_id_one_wins_and_the_others_are_refused(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    racers = 4
    sessions = [new_session() for _ in range(racers)]
    barrier = threading.Barrier(racers)
    outcomes: queue.Queue[BrokerEpoch | None] = queue.Queue()

    def race(number: int) -> None:
        barrier.wait(WAIT_S)
        try:
            outcomes.put(register(sessions[number], DirectoryIdentity(f"directory-{number}")))
        except BrokerIdInUse:
            outcomes.put(None)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    won = [epoch for epoch in (outcomes.get(timeout=WAIT_S) for _ in range(racers)) if epoch is not None]
    assert won == [alive(zookeeper)[0].epoch]
    assert (stored(zookeeper).number, stored(zookeeper).broker_epoch) == (0, won[0])


def test_an_old_node_that_vanishes_in_between_is_no_obstacle(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    killed = new_session()
    register(killed)

    def expire_first(send: Callable[[], object]) -> None:
        killed.close()
        with pytest.raises(MultiFailed) as failed:
            send()
        assert (failed.value.index, failed.value.reason) == (0, "no_node")
        raise failed.value

    assert register(Relay(zookeeper, expire_first)) == alive(zookeeper)[0].epoch
    assert stored(zookeeper).number == 1


def test_a_registration_whose_answer_was_lost_is_recognised(zookeeper: KazooZooKeeper) -> None:
    def lose_the_answer(send: Callable[[], object]) -> None:
        send()
        raise ConnectionLost("the answer")

    assert register(Relay(zookeeper, lose_the_answer)) == alive(zookeeper)[0].epoch
    assert stored(zookeeper).number == 0


def test_a_registration_that_never_arrived_is_sent_again(zookeeper: KazooZooKeeper) -> None:
    def lose_the_request(_send: Callable[[], object]) -> None:
        raise ConnectionLost("the request")

    assert register(Relay(zookeeper, lose_the_request)) == alive(zookeeper)[0].epoch
    assert stored(zookeeper).number == 0


@pytest.mark.bug("B74", "records", "A report of a failed disk is lost with its answer.")
@pytest.mark.parametrize("arrives", [True, False])
def test_a_report_without_an_answer_is_made_again(
    zookeeper: KazooZooKeeper, new_session: NewSession, arrives: bool
) -> None:
    """A start whose disk fails has nobody else who would say so; seed 800265."""
    register(new_session())

    def lose(send: Callable[[], object]) -> None:
        if arrives:
            send()
        raise ConnectionLost("the answer")

    report_suspect(Relay(zookeeper, lose), BROKER.id, DIRECTORY.uuid)
    assert read_suspect(zookeeper, BROKER.id) == {DIRECTORY.uuid}


def test_a_report_that_is_never_answered_says_so_to_who_makes_it(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    register(new_session())

    class Deaf(Relay):
        def multi(
            self, operations: Sequence[Operation], *, generation: int | None = None
        ) -> list[Stat | None]:
            raise ConnectionLost("the request")

    with pytest.raises(ConnectionLost, match="the request"):
        report_suspect(Deaf(zookeeper, lambda _send: None), BROKER.id, DIRECTORY.uuid)
    assert read_suspect(zookeeper, BROKER.id) == set()


def test_a_session_that_ends_meanwhile_leaves_nothing_registered(
    zookeeper: KazooZooKeeper, expire_session: Callable[[KazooZooKeeper], None]
) -> None:
    expired = threading.Event()
    zookeeper.on_session(lambda event: expired.set() if event == "expired" else None)

    def expire(_send: Callable[[], object]) -> None:
        expire_session(zookeeper)
        assert expired.wait(WAIT_S)

    with pytest.raises(SessionExpired):
        register(Relay(zookeeper, expire))
    assert zookeeper.exists(znodes.broker_path(BROKER.id)) is None
    assert zookeeper.exists(znodes.incarnation_path(BROKER.id)) is None


def test_a_registration_that_others_keep_changing_gives_up(zookeeper: KazooZooKeeper) -> None:
    class Unlucky(Relay):
        def multi(
            self, operations: Sequence[Operation], *, generation: int | None = None
        ) -> list[Stat | None]:
            raise MultiFailed(0, operations[0], "bad_version")

    with pytest.raises(SparklogError, match="broker 1 could not be registered in 10 attempts"):
        register(Unlucky(zookeeper, lambda _send: None))


# ---------------------------------------------------------------------------------------------- cluster id


def test_everybody_reads_the_cluster_id_that_the_first_made_up(
    zookeeper: KazooZooKeeper, new_session: NewSession
) -> None:
    sessions = [new_session() for _ in range(3)]
    ids: queue.Queue[str] = queue.Queue()
    threads = [
        threading.Thread(target=lambda client=client: ids.put(read_or_create_cluster_id(client)))
        for client in sessions
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    read = {ids.get(timeout=WAIT_S) for _ in sessions}
    assert read == {read_or_create_cluster_id(zookeeper)}
    assert len(read.pop()) == 22
