"""A broker stops where no partition falls below its minimum, stays stopped, and starts when it is wished."""

from dataclasses import replace

import pytest

from sparklog.core.controller.commands.broker_commands import ControlledShutdown, LoseLogs
from sparklog.core.controller.commands.topic_commands import CreateTopics
from sparklog.core.controller.state.operations import OPERATIONS
from sparklog.model.ids import BrokerEpoch, BrokerId


def test_the_wish_is_written_with_the_operation_and_the_end_follows_the_broker(world, operators):
    world.create(min_insync_replicas="2")
    operation = operators.begin("stop", 3)
    assert (operators.wish(3), operators.state(operation)) == ("stopped", "running")
    operators.stop_in_order(3)
    assert operators.state(operation) == "done"
    assert operators.stored(operation).done == 1
    assert operators.wish(3) == "stopped"


def test_a_new_controller_leaves_it_stopped(world, operators):
    operation = operators.begin("stop", 3)
    operators.stop_in_order(3)
    world.activate()
    assert (operators.wish(3), operators.state(operation)) == ("stopped", "done")


def test_a_stop_waits_while_a_partition_would_fall_below_its_minimum(world, operators):
    world.create(min_insync_replicas="2")
    world.propose(1, 1, 3)
    operation = operators.begin("stop", 3)
    assert operators.wish(3) == "serving"
    assert operators.waits(operation) == [
        "1 partition would fall below the minimum of replicas in sync: t-0 (minimum 2, without broker 3 1 in "
        "sync)"
    ]
    operators.return_to_isrs(2)
    assert operators.wish(3) == "stopped"
    assert operators.waits(operation) == []


def test_a_broker_that_is_shutting_down_does_not_count_as_in_sync(world, operators):
    world.create(min_insync_replicas="2")
    world.submit(ControlledShutdown(BrokerId(2), BrokerEpoch(world.epoch(2))))
    operators.begin("stop", 3)
    assert operators.wish(3) == "serving"


def test_a_broker_that_was_told_to_stop_does_not_count_as_in_sync(world, operators):
    world.create(min_insync_replicas="2")
    operators.begin("stop", 2)
    assert operators.wish(2) == "stopped"
    assert "broker 3" in operators.refused("stop", 3), "it could never be stopped beside broker 2"


def test_a_replica_whose_log_has_failed_does_not_count_as_in_sync(world, operators):
    world.create(min_insync_replicas="2")
    topic = world.machine.image.topics["t"].id
    world.submit(LoseLogs(BrokerId(2), BrokerEpoch(world.epoch(2)), ((topic, 0),)))
    operators.begin("stop", 3)
    assert operators.wish(3) == "serving"


def test_partitions_that_can_never_do_without_the_broker_are_named_first(world, operators):
    for number in range(5):
        world.create(f"single-{number}", replicas=((3,),))
    refusal = operators.refused("stop", 3)
    assert refusal == (
        "5 partitions need broker 3, because too few replicas would be left for their min.insync.replicas: "
        "single-0-0, single-1-0, single-2-0 and 2 more. They cannot be written while it is stopped; that is "
        "accepted with --accept-unavailable"
    )
    assert operators.wish(3) == "serving"
    operators.begin("stop", 3, accepts_unavailable=True)
    assert operators.wish(3) == "stopped"


def test_what_is_accepted_is_not_accepted_of_other_partitions(world, operators):
    world.create("single", replicas=((3,),))
    world.create("t", min_insync_replicas="2")
    world.propose(1, 1, 3)
    operation = operators.begin("stop", 3, accepts_unavailable=True)
    assert "t-0" in operators.waits(operation)[0]
    assert "single" not in operators.waits(operation)[0]


def test_two_brokers_that_are_stopped_together_are_judged_together(world, operators):
    world.create(min_insync_replicas="2")
    assert "needs broker" in operators.refused("stop", 2, 3)
    operation = operators.begin("stop", 2, 3, accepts_unavailable=True)
    assert (operators.wish(2), operators.wish(3)) == ("stopped", "serving"), "one after the other"
    operators.stop_in_order(2)
    assert operators.wish(3) == "stopped"
    operators.stop_in_order(3)
    assert operators.state(operation) == "done"


def test_the_last_broker_is_refused(world, operators):
    operators.begin("stop", 1)
    operators.begin("stop", 2)
    assert operators.refused("stop", 3) == (
        "no broker would be left that serves, after 3; that is accepted with --accept-unavailable"
    )
    operators.begin("stop", 3, accepts_unavailable=True)
    assert operators.wish(3) == "stopped"


def test_a_broker_that_is_away_is_stopped_at_once(world, operators):
    world.create(replicas=((3,),))
    world.crash(3)
    operation = operators.begin("stop", 3)
    assert operators.state(operation) == "done"


def test_unknown_brokers_are_refused(operators):
    assert operators.refused("stop", 7) == "there is no broker 7: there are [1, 2, 3]"
    assert operators.refused("stop") == "name between one broker and 1000 brokers, not 0"
    assert operators.refused("stop", is_all=True).startswith("only a restart can be of all brokers")


def test_two_operations_on_one_broker_are_refused(world, operators):
    operation = operators.begin("stop", 3)
    assert operators.refused("start", 2, 3) == (
        f"operation {operation} (stop 3) is under way on broker 3; wait for its end, or cancel it with: "
        f"sparklog brokers cancel {operation}"
    )
    assert operators.begin("stop", 2) == operation + 1, "another broker"


def test_a_request_that_is_sent_again_begins_nothing(world, operators):
    first = operators.begin("stop", 3, request="the same")
    assert operators.begin("stop", 3, request="the same") == first
    assert len(world.machine.image.operations) == 1


@pytest.mark.parametrize("lost", ["before", "after"])
def test_an_answer_of_zookeeper_that_is_lost_begins_one_operation(world, operators, lost):
    world.lose_answers.append(lost)
    operation = operators.begin("stop", 3)
    assert world.zk.children(OPERATIONS) == [str(operation)]
    assert operators.wish(3) == "stopped"


def test_a_broker_that_restarts_while_the_stop_of_another_is_written_is_seen_first(world, operators):
    world.create(min_insync_replicas="2")

    def restart():
        world.register(2, boot="another")

    world.before_write = [lambda: None, restart]
    operation = operators.begin("stop", 3)
    assert operators.wish(3) == "serving", "broker 2 has to prove its log, and 1 alone is in sync"
    assert operators.waits(operation)


def test_a_start_writes_the_wish_and_ends_once_the_broker_serves(world, operators):
    operators.begin("stop", 3)
    operators.stop_in_order(3)
    operation = operators.begin("start", 3)
    assert (operators.wish(3), operators.known(3).starts) == ("serving", 1)
    assert operators.waits(operation) == [], "the application has not heard of it yet"
    operators.host(3, state="no executor", reason="the master has 0 cores free")
    assert operators.waits(operation) == ["broker 3: no executor (the master has 0 cores free)"]
    world.start(3)
    assert operators.state(operation) == "done"


def test_a_start_of_a_broker_whose_application_does_not_run_says_so(world, operators):
    world.crash(3)
    world.do(world.machine.on_applications((), 0))
    operation = operators.begin("start", 3)
    assert operators.waits(operation) == ["no application runs broker 3; the last one was shop"]


def test_a_crash_loop_of_before_fails_no_start_and_a_new_one_does(world, operators):
    world.crash(3)
    operators.host(3, state="crash loop", reason="no disk")
    operation = operators.begin("start", 3)
    assert operators.state(operation) == "running", "the application has not obeyed yet"
    operators.host(3, state="crash loop", reason="no disk")
    assert operators.state(operation) == "failed"
    assert operators.stored(operation).reason == "broker 3 does not start: no disk"


def test_a_stop_that_is_cancelled_lets_the_broker_serve_again(world, operators):
    operation = operators.begin("stop", 3)
    assert operators.cancel(operation).operation == operation
    assert (operators.wish(3), operators.state(operation)) == ("serving", "cancelled")
    assert operators.cancel(operation).operation == operation, "once more"
    done = operators.begin("start", 3)
    assert operators.cancel(done).message == f"operation {done} (start 3) has ended: done"
    assert operators.cancel(99).message == "there is no operation 99"


def test_the_last_hundred_that_ended_are_kept(world, operators):
    for _ in range(105):
        operators.begin("start", 3)
    kept = sorted(map(int, world.zk.children(OPERATIONS)))
    assert len(kept) <= 102
    assert kept[-1] == 105
    world.activate()
    assert sorted(world.machine.image.operations) == kept


def test_a_stopped_broker_gets_no_partitions_of_new_topics(world, operators):
    operators.begin("stop", 3)
    topic = replace(world.new_topic("new"), assignment=None, partitions=6, replication_factor=2)
    world.answer_pushes(world.submit(CreateTopics((topic,), 10_000)))
    placed = {one for number in range(6) for one in world.state("new", number).replicas}
    assert placed == {1, 2}
