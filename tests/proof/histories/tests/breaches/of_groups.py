"""L12 to L14: committed offsets, who owns what in a generation, and what members are given."""

from histories.tests.breaches.registry import breaks, legal

# ---- L12 -----------------------------------------------------------------------------------------------


@breaks("CommittedOffsetsAreARegister")
def an_offset_is_read_that_another_one_has_replaced(it):
    it.commit("1")
    it.commit("2")
    it.committed("1")


@breaks("CommittedOffsetsAreARegister")
def a_committed_offset_is_gone(it):
    it.commit("1")
    it.committed(None)


@breaks("CommittedOffsetsAreARegister")
def an_offset_is_read_that_nobody_committed(it):
    it.commit("1")
    it.committed("2")


@breaks("CommittedOffsetsAreARegister")
def an_offset_is_read_whose_commit_was_refused(it):
    it.commit("1", "fail")
    it.committed("1")


@breaks("CommittedOffsetsAreARegister")
def an_offset_is_read_before_it_is_committed(it):
    it.committed("1")
    it.commit("1")


@breaks("CommittedOffsetsAreARegister")
def an_offset_is_gone_that_somebody_read_although_its_commit_has_no_answer(it):
    it.begin_commit("1")
    it.committed("1")
    it.committed(None)


@breaks("CommittedOffsetsAreARegister")
def two_readers_see_two_commits_in_an_order_that_was_impossible(it):
    it.begin_commit("1")
    it.committed("1")
    it.begin_commit("2")
    it.committed("2")
    it.committed("1")


@legal
def a_commit_under_way_is_read_or_not(it):
    it.commit("1")
    commit = it.begin_commit("2")
    it.committed("1")
    it.committed("2")
    it.committed("2")
    it.answer_commit(commit)
    it.committed("2")


@legal
def a_commit_without_an_answer_takes_effect_late(it):
    it.begin_commit("1")
    it.commit("2")
    it.committed("2")
    it.committed("1")


@legal
def two_commits_at_the_same_time_take_effect_in_either_order(it):
    first, second = it.begin_commit("1"), it.begin_commit("2")
    it.answer_commit(first)
    it.answer_commit(second)
    it.committed("1")


@legal
def a_read_that_overlaps_a_commit_sees_what_was_before(it):
    it.commit("1")
    began_ns = it.tick()
    it.commit("2")
    it.committed("1", began_ns)


@legal
def a_group_that_an_election_may_have_cost_its_offsets_reads_older_ones(it):
    it.commit("1")
    it.commit("2")
    it.group_lost()
    it.committed("1")


# ---- L13 -----------------------------------------------------------------------------------------------


@breaks("OneOwnerInAGeneration")
def two_members_own_the_same(it):
    it.assigned("a", "t-0", "t-1")
    it.assigned("b", "t-1")


@legal
def another_generation_has_another_owner(it):
    it.assigned("a", "t-0")
    it.assigned("b", "t-0", generation=2)
    it.assigned("b", "t-0", generation=2)


@legal
def a_generation_that_was_lost_comes_again(it):
    it.assigned("a", "t-0")
    it.group_lost()
    it.assigned("b", "t-0")


# ---- L14 -----------------------------------------------------------------------------------------------


def _three_records_of_which_members_are_given(it, *given):
    """By two members, of which the second goes on elsewhere than where the first stopped."""
    for offset, value in enumerate("abc"):
        it.send(value, offset)
    for offset, value in given:
        it.seek(offset, process=f"member-{offset}")
        it.poll(offset, (offset, value), process=f"member-{offset}")
        it.commit(str(offset + 1), process=f"member-{offset}")
    it.heal()
    it.poll(0, (0, "a"), (1, "b"), (2, "c"))
    it.final((0, "a"), (1, "b"), (2, "c"))


@breaks("GroupsAreGivenEverything")
def a_record_between_two_members_is_given_to_neither(it):
    _three_records_of_which_members_are_given(it, (0, "a"), (2, "c"))


@breaks("GroupsAreGivenEverything")
def the_last_record_is_given_to_nobody(it):
    _three_records_of_which_members_are_given(it, (0, "a"), (1, "b"))


@legal
def a_record_is_given_twice(it):
    _three_records_of_which_members_are_given(it, (0, "a"), (1, "b"), (1, "b"), (2, "c"))


@legal
def a_group_begins_behind_the_logs_start(it):
    _three_records_of_which_members_are_given(it, (1, "b"), (2, "c"))


@legal
def a_group_whose_offsets_an_election_may_have_cost_skips_records(it):
    it.group_lost()
    _three_records_of_which_members_are_given(it, (0, "a"), (2, "c"))
