"""What the controller tells of its decisions: one event for each, however many partitions it changes."""

from sparklog.core.controller.commands.partition_commands import AlterReassignments, ElectLeaders, Move
from sparklog.core.controller.commands.topic_commands import DeleteTopics, DoomedTopic
from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind
from sparklog.model.ids import BrokerId, TopicPartition

MANY = tuple((1 + number % 3, 1 + (number + 1) % 3) for number in range(30))


def told(done, *kinds):
    return [one for one in done if isinstance(one, ClusterEvent) and (not kinds or one.kind in kinds)]


def words(done, *kinds):
    return [str(one) for one in told(done, *kinds)]


def test_a_death_is_told_with_its_cause_and_the_election_with_the_time_that_it_took(world):
    world.create(replicas=MANY)
    epoch = world.epoch(3)
    died = world.machine.on_broker_died(BrokerId(3), epoch, world.now_ms, "was killed by SIGKILL")
    world.now_ms += 90
    done = world.do(died)
    (death,) = told(done, EventKind.broker)
    assert str(death) == "broker 3 on host died (was killed by SIGKILL)"
    assert (death.subject, death.brokers, death.is_warning) == ("broker 3", (3,), True)
    (election,) = told(done, EventKind.election)
    assert str(election) == "10 partitions have new leaders after 0.09 s (broker 3 died)"
    assert election.topics == (), "no topic is named"
    (shrunk,) = told(done, EventKind.isr)
    assert str(shrunk) == "broker 3 left the ISR of 10 partitions (broker 3 died)"


def test_a_session_that_ended_is_no_death(world):
    world.create()
    done = world.crash(1)
    assert words(done, EventKind.broker) == ["broker 1 on host is away (its session in ZooKeeper ended)"]
    assert words(done, EventKind.election) == ["1 partition has a new leader after 0.00 s (broker 1 left)"]


def test_a_broker_that_returns_serves(world):
    world.crash(2)
    assert words(world.start(2)) == ["broker 2 on host serves"]


def test_the_only_partition_of_an_event_is_named_and_so_is_its_topic(world):
    world.create("quakes")
    (election,) = told(world.crash(1), EventKind.election)
    assert (election.subject, election.topics) == ("quakes-0", ("quakes",))


def test_a_follower_that_leaves_and_joins_an_isr(world):
    world.create()
    world.propose(1, 1, 2)
    (left,) = told(world.done, EventKind.isr)
    assert str(left) == (
        "broker 3 left the ISR of 1 partition led by broker 1 (late for longer than replica.lag.time.max.ms)"
    )
    assert left.brokers == (3,)
    world.done.clear()
    world.propose(1, 1, 2, 3)
    assert words(world.done, EventKind.isr) == ["broker 3 joined the ISR of 1 partition led by broker 1"]


def test_topics_come_and_go(world):
    topic = world.create("t", ((1, 2), (2, 3)))
    assert words(world.done, EventKind.topic) == [
        "topic t is created with 2 partitions and replication factor 2"
    ]
    world.done.clear()
    world.answer_pushes(world.submit(DeleteTopics((DoomedTopic("t"),), 10_000)))
    assert words(world.done, EventKind.topic) == ["topic t is being deleted", "topic t is deleted"]
    assert {one.topics for one in told(world.done, EventKind.topic)} == {("t",)}
    assert topic not in world.machine.image.topic_names


def test_moves_begin_and_end(world):
    world.create("t", ((1, 2), (1, 2)))
    moves = tuple(Move(TopicPartition("t", number), (BrokerId(1), BrokerId(3))) for number in range(2))
    assert words(world.submit(AlterReassignments(moves)), EventKind.move) == [
        "2 partitions move to other brokers"
    ]
    world.done.clear()
    world.propose(1, 1, 2, 3)
    assert words(world.done, EventKind.move) == ["1 partition has ended moving"]


def test_a_partition_without_a_leader_is_told_once_as_a_warning(world):
    world.create("t", ((3,),))
    (lost,) = told(world.crash(3), EventKind.election)
    assert (str(lost), lost.is_warning) == ("1 partition has no leader (broker 3 left)", True)


def test_an_election_is_an_event_of_the_brokers_that_led_before(world):
    world.create("t", ((3, 1), (2, 3), (1, 2)))
    (election,) = told(world.crash(3), EventKind.election)
    assert election.brokers == (3,)
    world.create("alone", ((2,), (2, 1)))
    (led, lost) = told(world.crash(2), EventKind.election)
    assert (led.brokers, lost.brokers) == ((2,), (2,))


def test_losses_of_one_decision_are_one_event_that_counts_them(world):
    world.create("t", tuple((3,) for _ in range(5)))
    world.crash(3)
    done = world.start(3, directory="another disk")
    ends = {(3, TopicPartition("t", number)): (0, 7) for number in range(5)}
    done = world.answer_pushes(done, ends=ends)
    world.done.clear()
    world.command(ElectLeaders(True, None))
    (loss,) = told([*done, *world.done], EventKind.loss)
    assert loss.losses == 5
    assert loss.words.startswith("t-0: ")
    assert "and in 2 more partitions" in loss.words
    assert loss.topics == ("t",)
