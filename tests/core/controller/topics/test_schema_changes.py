"""Columns change version by version: each is written once, by who has seen the one before."""

import pytest

from sparklog.core.controller import actions as act
from sparklog.core.controller.commands.controller_command import CommandId
from sparklog.core.controller.commands.topic_commands import (
    AlterSchema,
    CreateTopics,
    DeleteTopics,
    DescribeSchemas,
    DoomedTopic,
    Increase,
)
from sparklog.core.controller.state import znodes
from sparklog.core.controller.state.image import AssignmentsChanged
from sparklog.core.controller.steps import AddPartitions
from sparklog.core.controller.topics.partition_increase import decide_increase, plan_increase
from sparklog.core.controller.topics.schema_changes import decide_schema, plan_schema
from sparklog.model.errors import ErrorCode
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.schema_settings import schema_settings
from sparklog.model.zookeeper import SetData

ADD = ("add-column", "x int")


@pytest.fixture
def typed(world):
    """The id of topic t, with column id."""
    topic = world.new_topic("t", configs=schema_settings("id bigint", key="id"))
    world.answer_pushes(world.submit(CreateTopics((topic,), 10_000)))
    return topic.id


def alter(*changes, version=1, topic="t"):
    return AlterSchema(topic, version, changes)


def columns(world, topic="t"):
    (described,) = world.command(DescribeSchemas((topic,))).topics
    return described.version, ddl_text(SchemaDocument.decode(described.document).at(described.version))


def sends(actions):
    return [one for one in actions if isinstance(one, act.SendUpdateMetadata | act.SendLeaderAndIsr)]


def test_document_and_version_are_one_write_and_every_broker_learns_the_version(world, typed):
    done = world.submit(alter(ADD))
    (write,) = (one for one in done if isinstance(one, act.WriteZooKeeper))
    written = {one.path: one.data for one in write.operations if isinstance(one, SetData)}
    assert written.keys() == {znodes.schema_path(typed), znodes.topic_path("t")}
    assert znodes.decode_topic("t", written[znodes.topic_path("t")]).schema_version == 2
    assert SchemaDocument.decode(written[znodes.schema_path(typed)]).version == 2
    updates = sends(done)
    assert {topic.schema_version for send in updates for topic in send.topics} == {2}
    assert {send.broker for send in updates} == set(world.machine.image.brokers)
    assert {type(send) for send in updates} == {act.SendUpdateMetadata, act.SendLeaderAndIsr}
    assert columns(world) == (2, "id bigint, x int")


def test_it_is_answered_when_the_brokers_know_the_version(world, typed):
    done = world.submit(alter(ADD))
    assert not [one for one in done if isinstance(one, act.Answer)]
    answered = world.answer_pushes(done)
    result = world.answer_in(answered)
    assert (result.error, result.version) == (ErrorCode.none, 2)


def test_a_broker_that_hangs_does_not_hold_it_up_for_long(world, typed):
    done = world.submit(alter(ADD))
    (wake,) = (one for one in done if isinstance(one, act.WakeAt))
    world.now_ms = wake.deadline_ms
    assert world.answer_in(world.do(world.machine.on_tick(world.now_ms))).version == 2


def test_the_loser_of_two_changes_must_look_again(world, typed):
    world.answer_pushes(world.submit(alter(ADD)))
    lost = world.answer_in(world.submit(alter(("add-column", "y int"))))
    assert (lost.error, lost.version) == (ErrorCode.invalid_update_version, 2)
    assert "there is version 2 now; look at it and change it again" in lost.message
    assert columns(world) == (2, "id bigint, x int")
    ahead = world.answer_in(world.submit(alter(ADD, version=3)))
    assert (ahead.error, ahead.version) == (ErrorCode.invalid_update_version, 2)


def test_a_change_that_is_not_allowed_is_refused_and_nothing_is_written(world, typed):
    for change, words in [
        (("drop-column", "id"), "topic 't': column id cannot be dropped: it is the topic's key column"),
        (("drop-column", "x y"), "'y' follows the column"),
        (("move-column", "id"), "there is no change 'move-column'"),
    ]:
        done = world.submit(alter(ADD, change))
        result = world.answer_in(done)
        assert (result.error, result.version) == (ErrorCode.invalid_config, 1)
        assert words in result.message
        assert not [one for one in done if isinstance(one, act.WriteZooKeeper)]
    assert columns(world) == (1, "id bigint")


def test_topics_without_columns_and_unknown_ones_are_refused(world, typed):
    world.create("plain")
    result = world.answer_in(world.submit(alter(ADD, topic="plain", version=0)))
    assert (result.error, result.version) == (ErrorCode.invalid_request, 0)
    assert "a topic is typed from its creation, or never" in result.message
    unknown = world.answer_in(world.submit(alter(ADD, topic="unknown")))
    assert unknown.error is ErrorCode.unknown_topic_or_partition


def test_a_step_that_was_planned_before_another_change_is_refused(world, typed):
    image = world.machine.image
    late = plan_schema(image, CommandId(77), alter(("add-column", "y int")))
    world.answer_pushes(world.submit(alter(ADD)))
    refused = decide_schema(image, late)
    assert (refused.error, refused.version) == (ErrorCode.invalid_update_version, 2)


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_try_whose_answer_was_lost_is_not_made_twice(world, typed, lost):
    world.zk.lose_next = lost
    done = world.submit(alter(ADD))
    assert columns(world) == (2, "id bigint, x int")
    assert world.answer_in(world.answer_pushes(done)).error is ErrorCode.none


def test_a_controller_that_takes_over_knows_the_change_and_tells_it_to_all(world, typed):
    world.submit(alter(ADD))
    updates = sends(world.activate())
    assert {topic.schema_version for send in updates for topic in send.topics} == {2}
    assert columns(world) == (2, "id bigint, x int")


def test_a_broker_that_was_down_during_a_change_learns_the_version_at_its_start(world, typed):
    world.crash(2)
    world.answer_pushes(world.submit(alter(ADD)))
    updates = [send for send in sends(world.start(2)) if send.broker == 2]
    assert {topic.schema_version for send in updates for topic in send.topics} == {2}


def test_partitions_that_were_planned_before_a_change_keep_its_version(world, typed):
    image = world.machine.image
    step = AddPartitions(CommandId(77), "t", plan_increase(image, Increase("t", 3)))
    world.answer_pushes(world.submit(alter(ADD)))
    (node,) = (
        one.node for one in decide_increase(image, step).changes if isinstance(one, AssignmentsChanged)
    )
    assert (len(node.assignments), node.schema_version) == (3, 2)


def test_a_topic_that_is_deleted_takes_no_change(world, typed):
    world.submit(DeleteTopics((DoomedTopic("t"),), 10_000))
    result = world.answer_in(world.submit(alter(ADD)))
    assert result.error is ErrorCode.unknown_topic_or_partition
