"""A typed topic in whole runs: columns change under writers and readers, and nothing is mixed up."""

import pytest

from simulation.invariants.invariant import Violation
from simulation.invariants.typed.columns import ColumnRules
from simulation.marks import Marks
from simulation.plans.plan import draw_plan
from simulation.plans.typed import WITH_CONDITIONS, WITH_TYPED, draw_typed
from simulation.run import simulate
from sparklog.model.schema.change_texts import parse_change
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.evolution import changed
from sparklog.model.schema.new_schema import new_schema

SEEDS = [seed for seed in range(1, 30) if draw_plan(seed).typed]
FIRST = new_schema(parse_ddl("a int, b int"))


def after(schema, *changes):
    return changed(schema, [parse_change(*change.split(" ", 1)) for change in changes])


def test_a_quarter_of_the_seeds_has_a_typed_topic():
    drawn = sum(draw_typed(seed) is not None for seed in range(1, 2_001))
    assert abs(drawn / 2_000 - WITH_TYPED) < 0.03


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_columns_change_under_writers_and_readers_and_no_rule_is_broken(seed):
    outcome = simulate(draw_plan(seed))
    assert outcome.violation is None
    assert outcome.marks["columns were changed"]
    assert outcome.marks["a reader mapped rows of another version"]


def test_half_of_the_typed_topics_have_a_reader_that_names_columns_and_gets_just_these():
    plans = [plan for plan in map(draw_typed, range(1, 2_001)) if plan is not None]
    assert 0.4 < sum(plan.column_readers for plan in plans) / len(plans) < 0.6
    seed = next(seed for seed in SEEDS if draw_plan(seed).typed.column_readers)
    outcome = simulate(draw_plan(seed))
    assert outcome.violation is None
    assert outcome.marks["a reader was given the columns that it named"]


def test_some_of_these_have_readers_with_a_condition_which_get_the_rows_that_it_keeps():
    plans = [plan for plan in map(draw_typed, range(1, 2_001)) if plan is not None and plan.column_readers]
    having = [plan for plan in plans if plan.condition_readers]
    assert abs(len(having) / len(plans) - WITH_CONDITIONS) < 0.1
    assert {len(plan.transactions) for plan in having} == {0, 1}
    seeds = [seed for seed in range(1, 100) if has_transactions(draw_plan(seed).typed)]
    outcome = simulate(draw_plan(seeds[0]))
    assert outcome.violation is None
    assert outcome.marks["a reader with a condition was passed over batches"]


def has_transactions(plan):
    return plan is not None and bool(plan.transactions)


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        (
            [FIRST, after(FIRST, "rename-column a=c"), after(FIRST, "rename-column a=d")],
            "VersionsNeverChange",
        ),
        (
            [after(FIRST, "drop-column b"), after(after(FIRST, "drop-column a"), "add-column a int")],
            "Versions",
        ),
    ],
)
def test_versions_that_differ_between_answers_break_a_rule(told, rule):
    rules = ColumnRules(Marks())
    for document in told[:-1]:
        rules.see(document)
    with pytest.raises(Violation, match=rule):
        rules.see(told[-1])


def test_a_change_that_is_said_to_have_made_another_version_breaks_a_rule():
    rules = ColumnRules(Marks())
    with pytest.raises(Violation, match="a change of version 1 is said to have made version 3"):
        rules.made(after(FIRST, "drop-column b"), 3)
    rules.made(after(FIRST, "drop-column b"), 2)
    with pytest.raises(Violation, match="EachVersionIsMadeOnce"):
        rules.see(after(FIRST, "drop-column a"))
