"""At the end of a run: what clients saw, judged by a checker that knows nothing of sparklog."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from histories.check import check
from histories.facts import SECOND, Limits
from histories.findings import Finding
from histories.model import History, Send
from simulation.clients.consumers import Consumer
from simulation.invariants.invariant import Violation
from simulation.marks import Marks
from simulation.recorder import NS_PER_US, Recorder
from simulation.witness import Witness
from sparklog.model.ids import TopicPartition

LIMITS: Final = Limits(acks_min=0, settle_ns=60 * SECOND, stale_ns=0)
"""How long a healed cluster may take to answer is for ``ComesToRest`` to say; from then on it must."""


def judge(witness: Witness, consumers: list[Consumer], *, is_at_rest: bool) -> None:
    """Raises the first finding. What a consumer read since it began again, after healing, is the truth.

    A history of a cluster at rest that lacks what a judge needs, as a final read of a partition, is a finding
    as well: its rules had nothing to find. Of one that nobody waited for, some consumers are still on their
    way.
    """
    history = history_of(witness, consumers, is_at_rest=is_at_rest)
    verdict = check(history, limits_of(witness.recorder))
    if verdict.findings:
        raise violation_of(verdict.findings[0])
    if verdict.invalid and is_at_rest:
        raise Violation("HistoriesCanBeJudged", "; ".join(verdict.invalid))
    mark(history, witness.marks)


def limits_of(recorder: Recorder) -> Limits:
    if recorder.rested_us < 0:
        return LIMITS
    return replace(LIMITS, answer_ns=(recorder.rested_us - recorder.healed_us) * NS_PER_US)


def history_of(witness: Witness, consumers: list[Consumer], *, is_at_rest: bool) -> History:
    """``is_at_rest``: every consumer has read all. If not, those that came to the end say what there is."""
    recorder = witness.recorder
    history = recorder.history()
    _add_finals(recorder, history, witness, [one for one in consumers if is_at_rest or one.is_at_end])
    return history


def _add_finals(recorder: Recorder, history: History, witness: Witness, consumers: list[Consumer]) -> None:
    done: set[TopicPartition] = set()
    for consumer in consumers:
        where = consumer.topic_partition
        truth = witness.truths.get(where)
        if truth is None or where in done:
            continue
        done.add(where)
        recorder.add_final(
            history,
            where,
            consumer.first_read,
            end=consumer.offset,
            may_delete_before=truth.deleted_end,
            has_retention=truth.may_delete,
        )


def violation_of(finding: Finding) -> Violation:
    evidence = "; ".join(finding.evidence)
    return Violation(
        finding.rule, f"{finding.where}: {finding.what}" + (f" ({evidence})" if evidence else "")
    )


def mark(history: History, marks: Marks) -> None:
    """Which of the fates that are allowed came about."""
    there = {value for final in history.finals for _, value in final.records}
    read = {(final.topic, final.partition): final.start for final in history.finals}
    for send in history.sends:
        if (send.topic, send.partition) in read and send.key is None:
            for fate in _fates(send, is_there=send.value in there, start=read[send.topic, send.partition]):
                marks.reach(fate)


def _fates(send: Send, *, is_there: bool, start: int) -> Iterator[str]:
    if send.outcome == "info":
        yield (
            "a record without an answer was there" if is_there else "a record without an answer was not there"
        )
    elif send.outcome == "ok" and not is_there and send.acks == 0:
        yield "a record with acks=0 was lost"
    elif send.outcome == "ok" and not is_there and send.acks == 1 and send.offset >= start:
        yield "a record with acks=1 was lost with its leader"
