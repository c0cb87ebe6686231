"""What rules of transactions and typed rows say when they had nothing to look at."""

import pytest

from histories import Limits, check
from histories.check import RULES
from histories.report import as_lines

LIMITS = Limits(acks_min=0)
NAMES = [rule.name for rule in RULES if rule.number.startswith(("T", "W"))]


@pytest.fixture
def whole(scribe):
    """Transactions in which every rule of theirs has something to judge, and none is broken."""
    scribe.init("old")
    scribe.send("a", 0, session="old", transaction="x", cells={2: "7"})
    scribe.finish("x")
    scribe.poll(0, (0, "a"), isolation="committed", columns=[2], cells=[(0, 2, "7")])
    scribe.init("new")
    scribe.answer(scribe.begin("b", session="old", transaction="y"), "fail")
    scribe.send("copy of a", 0, session="new", transaction="z", topic="copied", source="a")
    scribe.finish("z", write="app/0")
    scribe.heal()
    scribe.final((0, "a"), end=2, high_watermark=2)
    scribe.final((0, "copy of a"), topic="copied")
    return scribe


def no_transactions(it):
    for send in it.history.sends:
        send.transaction = None


def no_final(it):
    it.history.finals.clear()


def no_isolation(it):
    for read in it.history.reads:
        read.isolation = ""


def no_inits(it):
    it.history.inits.clear()


def no_pipelines(it):
    for send in it.history.sends:
        send.source = None


def no_heal(it):
    it.history.healed_ns = -1


def no_writes(it):
    for finish in it.history.finishes:
        finish.write = ""


def no_cells(it):
    for send in it.history.sends:
        send.cells = None


def no_high_watermarks(it):
    for final in it.history.finals:
        final.high_watermark = -1


LACKING = [
    ("TransactionsAreAtomic", no_transactions, "no transactions"),
    ("TransactionsAreAtomic", no_final, "no final read (3)"),
    ("NothingUncommittedIsRead", no_isolation, "no records of transactions read as committed"),
    ("ReadersStopAtTheLastStableOffset", no_isolation, "no polls of committed records"),
    ("FencedProducersHaveNoEffect", no_inits, "no sends and commits of fenced producers"),
    ("PipelinesCopyOnce", no_pipelines, "no records of pipelines' inputs"),
    ("PipelinesCopyOnce", no_heal, "no heal (1)"),
    ("NothingHangs", no_high_watermarks, "no ends of logs for both kinds of readers"),
    ("VersionsAreWrittenOnce", no_writes, "no versions of atomic writes"),
    ("VersionsAreWrittenOnce", no_final, "no final read (1)"),
    ("RowsKeepTheirColumns", no_cells, "no typed rows that were read"),
]


def _line_of(name, history):
    (line,) = (line for line in as_lines(check(history, LIMITS)) if line[5:].startswith(f"{name} "))
    return line


def test_all_rules_of_transactions_judge_a_history_that_has_everything(whole):
    verdict = check(whole.history, LIMITS)
    assert verdict.is_clean, verdict.findings
    assert {one.rule.name for one in verdict.judgements if one.is_judged} >= set(NAMES)


@pytest.mark.parametrize(("name", "take_away", "why"), LACKING)
def test_a_rule_without_its_matter_is_not_judged_and_says_why(whole, name, take_away, why):
    take_away(whole)
    assert _line_of(name, whole.history).endswith(f" not judged: {why}")


def test_every_rule_of_transactions_lacks_its_matter_somewhere():
    assert {name for name, _, _ in LACKING} == set(NAMES)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("TransactionsAreAtomic", "ok, 3 transactions"),
        ("NothingUncommittedIsRead", "ok, 1 records of transactions read as committed"),
        ("ReadersStopAtTheLastStableOffset", "ok, 1 polls of committed records"),
        ("FencedProducersHaveNoEffect", "ok, 1 sends and commits of fenced producers"),
        ("PipelinesCopyOnce", "ok, 2 records of pipelines' inputs"),
        ("NothingHangs", "ok, 1 ends of logs for both kinds of readers"),
        ("VersionsAreWrittenOnce", "ok, 1 versions of atomic writes"),
        ("RowsKeepTheirColumns", "ok, 1 typed rows that were read"),
    ],
)
def test_a_rule_that_is_kept_says_how_much_it_judged(whole, name, told):
    assert _line_of(name, whole.history).endswith(f" {told}")
