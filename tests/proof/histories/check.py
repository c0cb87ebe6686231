"""Judges a history: all rules, what is missing for a judgement, and figures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Final

from histories import (
    rules_of_groups,
    rules_of_logs,
    rules_of_readers,
    rules_of_rows,
    rules_of_transactions,
    rules_of_writes,
)
from histories.facts import Facts, Limits
from histories.figures import Figures, figures_of
from histories.findings import Finding, Judged, Judgement, Rule
from histories.model import History

FINDINGS_MAX: Final = 100
"""Of one rule; a history that breaks one so often needs no more."""

RULES: Final = (
    Rule(
        "OneValuePerOffset",
        "L1",
        "an offset never shows two values, in answers, polls, final reads and replicas' logs",
        "second looks at an offset",
        rules_of_logs.one_value_per_offset,
    ),
    Rule(
        "AcknowledgedWritesStay",
        "L2",
        "what was acknowledged with acks=all is there at the end, where the answer said",
        "sends acknowledged with acks=all",
        rules_of_logs.acknowledged_writes_stay,
    ),
    Rule(
        "LeadersLoseWithAnElectionOnly",
        "L2'",
        "what was acknowledged with acks=1 is there, unless its leader was replaced before it was committed",
        "sends acknowledged with acks=1",
        rules_of_logs.leaders_lose_with_an_election_only,
    ),
    Rule(
        "NothingIsInvented",
        "L3",
        "whatever is read was sent, to that partition, before, and not refused",
        "records read",
        rules_of_logs.nothing_is_invented,
    ),
    Rule(
        "NothingIsDoubled",
        "L4",
        "what an idempotent producer sent is there once",
        "records of idempotent producers",
        rules_of_logs.nothing_is_doubled,
    ),
    Rule(
        "ProducersKeepTheirOrder",
        "L5",
        "what an idempotent session sent, or one with one request in flight, is in the order of its numbers",
        "records behind others of their session",
        rules_of_logs.producers_keep_their_order,
    ),
    Rule(
        "OrderIsReal",
        "L6",
        "what was sent after an acknowledgement is behind what was acknowledged",
        "acknowledged records behind others",
        rules_of_logs.order_is_real,
    ),
    Rule(
        "ReadsAreRepeatable",
        "L7",
        "whatever anybody read stays, until it may be deleted",
        "polled records",
        rules_of_readers.reads_are_repeatable,
    ),
    Rule(
        "PollsGoOn",
        "L8",
        "an assigned consumer neither goes back nor skips what is there",
        "polls with records, or after others",
        rules_of_readers.polls_go_on,
    ),
    Rule(
        "TheEndNeverFallsBack",
        "L9",
        "ListOffsets(latest) answers nothing lower than what was seen, and what leaders' epochs allow",
        "answers to ListOffsets(latest)",
        rules_of_readers.the_end_never_falls_back,
    ),
    Rule(
        "EverythingIsSeen",
        "L10",
        "after healing, consumers come to all that was acknowledged, in time",
        "sends acknowledged with acks=all",
        rules_of_readers.everything_is_seen,
    ),
    Rule(
        "HealedClustersAnswer",
        "L11",
        "a while after healing, sends with acks=all get definite answers, not all refusals",
        "sends with acks=all so long after healing",
        rules_of_readers.healed_clusters_answer,
    ),
    Rule(
        "ReplicasAreEqual",
        "L11",
        "after healing, replicas' logs are committed to their ends and the same to the byte",
        "dumps of replicas' logs",
        rules_of_readers.replicas_are_equal,
    ),
    Rule(
        "CommittedOffsetsAreARegister",
        "L12",
        "a committed offset that is read is the last one, or one under way: none is stale, lost or invented",
        "committed offsets read",
        rules_of_groups.committed_offsets_are_a_register,
    ),
    Rule(
        "OneOwnerInAGeneration",
        "L13",
        "no two members of a generation of a group are assigned the same",
        "assignments",
        rules_of_groups.one_owner_in_a_generation,
    ),
    Rule(
        "GroupsAreGivenEverything",
        "L14",
        "members of a group are given every record of the partitions in which they commit, at least once",
        "records of partitions in which a group commits",
        rules_of_groups.groups_are_given_everything,
    ),
    Rule(
        "TransactionsAreAtomic",
        "T1",
        "of a committed transaction all is there at the end, of another nothing, and none is torn",
        "transactions",
        rules_of_transactions.transactions_are_atomic,
    ),
    Rule(
        "NothingUncommittedIsRead",
        "T2",
        "readers of committed records are given nothing of an open or aborted transaction",
        "records of transactions read as committed",
        rules_of_transactions.nothing_uncommitted_is_read,
    ),
    Rule(
        "ReadersStopAtTheLastStableOffset",
        "T3",
        "readers of committed records do not pass the first record of an open transaction",
        "polls of committed records",
        rules_of_transactions.readers_stop_at_the_last_stable_offset,
    ),
    Rule(
        "FencedProducersHaveNoEffect",
        "T4",
        "once a later producer has its transactional id, a producer neither sends nor commits",
        "sends and commits of fenced producers",
        rules_of_transactions.fenced_producers_have_no_effect,
    ),
    Rule(
        "PipelinesCopyOnce",
        "T5",
        "each record of a pipeline's input has one committed copy",
        "records of pipelines' inputs",
        rules_of_transactions.pipelines_copy_once,
    ),
    Rule(
        "NothingHangs",
        "T7",
        "after healing, committed records end where the log ends",
        "ends of logs for both kinds of readers",
        rules_of_transactions.nothing_hangs,
    ),
    Rule(
        "VersionsAreWrittenOnce",
        "W1",
        "of a version of atomic writes one try is there, or none if no driver was told that it is committed",
        "versions of atomic writes",
        rules_of_writes.versions_are_written_once,
    ),
    Rule(
        "RowsKeepTheirColumns",
        "W2",
        "a typed row shows in each of its reader's columns what its writer gave that column, and else null",
        "typed rows that were read",
        rules_of_rows.rows_keep_their_columns,
    ),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``invalid`` says what is missing: such a history proves nothing, whatever the rules found."""

    judgements: tuple[Judgement, ...]
    """One for each rule."""
    invalid: tuple[str, ...]
    figures: Figures

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for one in self.judgements for finding in one.findings)

    @property
    def is_clean(self) -> bool:
        return not self.findings and not self.invalid


def check(history: History, limits: Limits | None = None, *, rules: Sequence[Rule] = RULES) -> Verdict:
    limits = Limits() if limits is None else limits
    facts = Facts.of(history, limits)
    judgements = tuple(_judge(rule, facts) for rule in rules)
    figures = figures_of(facts)
    missing = _missing(facts, limits, figures)
    if not any(one.is_judged for one in judgements):
        missing.append("no rule had anything to judge")
    return Verdict(judgements, tuple(missing), figures)


def _judge(rule: Rule, facts: Facts) -> Judgement:
    judged = Judged()
    found = [
        Finding(rule.name, str(where), what, evidence)
        for where, what, evidence in islice(rule.look(facts, judged), FINDINGS_MAX + 1)
    ]
    if len(found) > FINDINGS_MAX:
        found[-1] = replace(found[-1], what="and so on", evidence=())
    return Judgement(rule, judged, tuple(found))


def _missing(facts: Facts, limits: Limits, figures: Figures) -> list[str]:
    missing = [f"the value {send.value} was sent twice" for send in facts.sent_twice[:10]]
    if figures.acknowledged < limits.acks_min:
        missing.append(f"{figures.acknowledged} sends were acknowledged; a run must have {limits.acks_min}")
    if figures.windows_with_traffic < limits.windows_min:
        windows = figures.windows_with_traffic
        missing.append(f"{windows} faults met traffic; a run must have {limits.windows_min}")
    for one in facts.partitions.values():
        if one.final is None and not one.is_gone and one.acked:
            missing.append(f"{one} has acknowledged sends, and no final read")
        elif one.final is not None:
            missing += _untidy(str(one), one.offsets)
    return missing


def _untidy(where: str, offsets: list[int]) -> list[str]:
    ascends = all(a < b for a, b in pairwise(offsets))
    return [] if ascends else [f"the final read of {where} is not in the order of offsets"]
