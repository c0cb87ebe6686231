"""Every assignor covers every partition once; each has its own idea of fairness."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparklog.client.group.assignors.assignor import Assignments, Assignor, Subscriber
from sparklog.client.group.assignors.range import RangeAssignor
from sparklog.client.group.assignors.round_robin import RoundRobinAssignor
from sparklog.client.group.assignors.sticky import CooperativeStickyAssignor, balance
from sparklog.model.ids import TopicPartition

ALL: list[Assignor] = [RangeAssignor(), RoundRobinAssignor(), CooperativeStickyAssignor()]
TOPICS = ("a", "b", "c")

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9))
groups = st.lists(st.frozensets(st.sampled_from(TOPICS), min_size=1), min_size=1, max_size=5).map(
    lambda topics: [Subscriber(f"m{number}", wanted) for number, wanted in enumerate(topics)]
)


def member(
    name: str, *topics: str, instance: str | None = None, owned: str = "", generation: int = 1
) -> Subscriber:
    partitions = frozenset(partition(one) for one in owned.split())
    return Subscriber(name, frozenset(topics), instance, partitions, generation)


def partition(text: str) -> TopicPartition:
    topic, _, number = text.partition("-")
    return TopicPartition(topic, int(number))


def words(assignments: Assignments) -> dict[str, str]:
    return {name: " ".join(map(str, partitions)) for name, partitions in assignments.items()}


def with_owned(group: list[Subscriber], assignments: Assignments, generation: int) -> list[Subscriber]:
    """The members as they join the next time."""
    return [
        Subscriber(one.member_id, one.topics, None, frozenset(assignments.get(one.member_id, ())), generation)
        for one in group
    ]


@pytest.mark.parametrize("assignor", ALL, ids=lambda one: one.name)
@given(group=groups, counts=counts)
def test_every_wanted_partition_has_exactly_one_member_that_wants_it(
    assignor: Assignor, group: list[Subscriber], counts: dict[str, int]
) -> None:
    assignments = assignor.assign(group, counts)
    assert assignments.keys() == {one.member_id for one in group}
    assert all(got.topic in one.topics for one in group for got in assignments[one.member_id])
    wanted = {topic for one in group for topic in one.topics}
    expected = sorted(
        TopicPartition(topic, number) for topic in wanted for number in range(counts.get(topic, 0))
    )
    assert sorted(got for partitions in assignments.values() for got in partitions) == expected


def test_range_gives_each_member_one_run_of_every_topic() -> None:
    group = [member("m2", "a", "b"), member("m1", "a", "b"), member("m3", "a")]
    assert words(RangeAssignor().assign(group, {"a": 7, "b": 3})) == {
        "m1": "a-0 a-1 a-2 b-0 b-1",
        "m2": "a-3 a-4 b-2",
        "m3": "a-5 a-6",
    }


def test_round_robin_goes_through_all_topics_and_passes_over_members_that_do_not_want_one() -> None:
    group = [member("m1", "a"), member("m2", "a", "b"), member("m3", "b")]
    assert words(RoundRobinAssignor().assign(group, {"a": 3, "b": 2})) == {
        "m1": "a-0 a-2",
        "m2": "a-1 b-0",
        "m3": "b-1",
    }


@pytest.mark.parametrize("assignor", ALL, ids=lambda one: one.name)
def test_a_static_member_has_the_same_partitions_under_a_new_member_id(assignor: Assignor) -> None:
    before = [member("m1", "a"), member("m2", "a", instance="i")]
    after = [member("m1", "a"), member("m0", "a", instance="i")]
    assert assignor.assign(before, {"a": 3})["m2"] == assignor.assign(after, {"a": 3})["m0"]


@given(group=groups, counts=counts)
def test_no_member_could_take_a_partition_of_one_that_has_two_more(
    group: list[Subscriber], counts: dict[str, int]
) -> None:
    assignments = balance(group, counts)
    for one in group:
        for other in group:
            if any(got.topic in other.topics for got in assignments[one.member_id]):
                assert len(assignments[one.member_id]) - len(assignments[other.member_id]) <= 1


@given(group=groups, counts=counts)
def test_a_balanced_group_keeps_everything(group: list[Subscriber], counts: dict[str, int]) -> None:
    assignments = balance(group, counts)
    assert CooperativeStickyAssignor().assign(with_owned(group, assignments, 7), counts) == assignments


@given(before=groups, after=groups, counts=counts)
@example(
    before=[
        Subscriber("m0", frozenset("a")),
        Subscriber("m1", frozenset("a")),
        Subscriber("m2", frozenset("c")),
    ],
    after=[
        Subscriber(f"m{number}", frozenset(topics))
        for number, topics in enumerate(["b", "c", "abc", "a", "c"])
    ],
    counts={"a": 2, "b": 1, "c": 2},
)
def test_cooperative_rounds_end_and_give_no_partition_to_two(
    before: list[Subscriber], after: list[Subscriber], counts: dict[str, int]
) -> None:
    """Members join and leave; those that stay own what they had. Mostly the second round is the last."""
    wanted = {topic for one in after for topic in one.topics}
    expected = sorted(
        TopicPartition(topic, number) for topic in wanted for number in range(counts.get(topic, 0))
    )
    owned = balance(before, counts)
    for generation in range(1, 6):
        assigned = CooperativeStickyAssignor().assign(with_owned(after, owned, generation), counts)
        for one in after:
            others = {got for other in after if other is not one for got in owned.get(other.member_id, ())}
            assert not others & set(assigned[one.member_id])
        owned = assigned
    assert sorted(got for partitions in owned.values() for got in partitions) == expected


def test_a_new_member_gets_its_share_in_two_rounds_and_the_others_keep_theirs() -> None:
    group = [
        member("m1", "a", owned="a-0 a-1 a-2"),
        member("m2", "a", owned="a-3 a-4 a-5"),
        member("m3", "a", generation=-1),
    ]
    assignor = CooperativeStickyAssignor()
    first = assignor.assign(group, {"a": 6})
    assert words(first) == {"m1": "a-0 a-1", "m2": "a-3 a-4", "m3": ""}
    second = assignor.assign(with_owned(group, first, 2), {"a": 6})
    assert words(second) == {"m1": "a-0 a-1", "m2": "a-3 a-4", "m3": "a-2 a-5"}


def test_the_claim_of_a_later_generation_wins_and_equal_claims_are_void() -> None:
    late, early = (
        member("m1", "a", owned="a-0", generation=5),
        member("m2", "a", owned="a-0 a-1", generation=4),
    )
    assert words(balance([late, early], {"a": 2})) == {"m1": "a-0", "m2": "a-1"}
    twins = [member("m1", "a", owned="a-0"), member("m2", "a", owned="a-0")]
    assert words(CooperativeStickyAssignor().assign(twins, {"a": 1})) == {"m1": "", "m2": ""}


def test_a_member_that_is_alone_gets_the_partitions_of_the_one_that_left() -> None:
    left_over = [member("m1", "a", owned="a-0 a-1")]
    assert words(CooperativeStickyAssignor().assign(left_over, {"a": 4})) == {"m1": "a-0 a-1 a-2 a-3"}


def test_ten_thousand_partitions_are_divided_among_a_hundred_members_with_few_moves() -> None:
    owners = [
        member(
            f"m{number:03}", "a", owned=" ".join(f"a-{n}" for n in range(number * 200, number * 200 + 200))
        )
        for number in range(50)
    ]
    joined = [member(f"n{number:03}", "a", generation=-1) for number in range(50)]
    assignments = balance([*owners, *joined], {"a": 10_000})
    assert {len(partitions) for partitions in assignments.values()} == {100}
    assert all(set(assignments[one.member_id]) <= one.owned for one in owners)
