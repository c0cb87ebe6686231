"""Changes of topics cost tokens; a client in debt is refused, or asked to wait."""

import pytest

from sparklog.core.client_quotas.sampled_rate import DELAY_MAX_MS
from sparklog.core.controller.commands.quota_commands import AlterQuotas, QuotaAlteration, QuotaChange
from sparklog.core.controller.commands.topic_commands import (
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    DoomedTopic,
    Increase,
)
from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC
from sparklog.model.quota_entity import QuotaEntity

RATE = 1.0
"""Partitions a second: eleven at once."""


APP = QuotaEntity((("client-id", "app"),))


def limit(world, rate=RATE):
    changes = (QuotaChange("controller_mutation_rate", rate),)
    world.command(AlterQuotas((QuotaAlteration(APP, changes),)))


def ask(world, request, *, is_strict=True, client="app"):
    """The answer, once all brokers have acknowledged."""
    world.next_command += 1
    done = world.submit(request, client_id=client, is_strict=is_strict)
    return world.answer_in([*done, *world.answer_pushes(done)], world.next_command)


def create(world, name, partitions=1, *, validate_only=False, **client):
    topic = world.new_topic(name, ((1,),) * partitions)
    return ask(world, CreateTopics((topic,), 10_000, validate_only), **client)


def error(result):
    return result.topics[0].error


@pytest.mark.scenario("S18", "Too many changes of topics under a quota are refused (KIP-599).")
def test_a_client_in_debt_is_refused_until_the_debt_is_paid(world):
    limit(world)
    assert error(create(world, "large", 13)) is ErrorCode.none
    refused = create(world, "next")
    assert (error(refused), refused.throttle_ms) == (ErrorCode.throttling_quota_exceeded, 2_000)
    assert refused.topics[0].message == "The throttling quota has been exceeded."
    assert "next" not in world.machine.image.topics
    world.now_ms += 2_000
    assert error(create(world, "next")) is ErrorCode.none


def test_the_topics_of_a_request_are_charged_one_by_one(world):
    limit(world)
    topics = tuple(world.new_topic(name, ((1,),) * 12) for name in ("one", "two"))
    result = ask(world, CreateTopics(topics, 10_000))
    assert [topic.error for topic in sorted(result.topics, key=lambda topic: topic.name)] == [
        ErrorCode.none,
        ErrorCode.throttling_quota_exceeded,
    ]
    assert result.throttle_ms == 1_000


def test_an_older_client_has_its_change_and_is_asked_to_wait(world):
    limit(world)
    first = create(world, "large", 13, is_strict=False)
    assert (error(first), first.throttle_ms) == (ErrorCode.none, 2_000)
    second = create(world, "next", is_strict=False)
    assert (error(second), second.throttle_ms) == (ErrorCode.none, 3_000)


def test_deletions_and_partitions_that_are_added_cost_as_well(world):
    create(world, "t", 8)
    create(world, "kept")
    limit(world)
    increase = CreatePartitions((Increase("t", 10),), 10_000)
    assert error(ask(world, increase)) is ErrorCode.none  # two of eleven
    assert error(ask(world, DeleteTopics((DoomedTopic("t"),), 10_000))) is ErrorCode.none  # ten
    refused = create(world, "u")
    assert (error(refused), refused.throttle_ms) == (ErrorCode.throttling_quota_exceeded, 1_000)
    limit(world, 0.0)
    refused = ask(world, DeleteTopics((DoomedTopic("kept"),), 10_000))
    assert error(refused) is ErrorCode.throttling_quota_exceeded
    assert not world.machine.image.is_deleting("kept")


def test_what_is_refused_or_only_validated_costs_nothing(world):
    limit(world)
    for _ in range(20):
        assert error(create(world, "valid", 5, validate_only=True)) is ErrorCode.none
        assert error(create(world, "no name")) is ErrorCode.invalid_topic_exception
    assert error(create(world, "t", 11)) is ErrorCode.none
    assert error(create(world, "u")) is ErrorCode.none


def test_another_client_and_internal_topics_are_not_charged(world):
    limit(world)
    create(world, "large", 13)
    assert error(create(world, "next", client="other")) is ErrorCode.none
    assert error(create(world, GROUP_OFFSETS_TOPIC)) is ErrorCode.none


def test_a_rate_of_nothing_allows_no_change_and_its_removal_all(world):
    limit(world, 0.0)
    refused = create(world, "t")
    assert (error(refused), refused.throttle_ms) == (ErrorCode.throttling_quota_exceeded, DELAY_MAX_MS)
    limit(world, None)
    assert error(create(world, "t", 20)) is ErrorCode.none


def test_the_next_controller_knows_the_quotas(world):
    limit(world)
    world.activate()
    create(world, "large", 13)
    assert error(create(world, "next")) is ErrorCode.throttling_quota_exceeded
