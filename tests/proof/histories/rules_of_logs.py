"""Rules about what is in a log: nothing lost, invented, doubled or put in another order.

Each rule goes over a partition's operations once.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise
from typing import Final

from histories.facts import FOREVER, Facts, PartitionFacts
from histories.findings import Found, Judged, seconds, told_final, told_poll, told_send
from histories.model import ACKS_ALL, Dump, FaultWindow, FinalRead, Poll, Send

NOBODY: Final = "-1"
"""Leader of a partition that has none."""

Sight = tuple[int | None, int, str, Send | Poll | FinalRead | Dump]
"""In which life, at which offset, which value, and what shows it."""


def one_value_per_offset(facts: Facts, judged: Judged) -> Found:
    """Answers with acks=1 are left out: what only a leader had may be replaced."""
    for one in facts.partitions.values():
        lives: dict[int, dict[int, str]] = {}
        told: set[tuple[int, int]] = set()
        sights = 0
        for life, offset, value, shown in _sights(one):
            if life is None:
                judged.leave_out(_why_elsewhere(one, shown), 1)
                continue
            sights += 1
            seen = lives.get(life)
            if seen is None:
                seen = lives[life] = {}
            known = seen.setdefault(offset, value)
            if known != value and (life, offset) not in told:
                told.add((life, offset))
                evidence = [
                    f"{_who(shown)} {there} at {offset}"
                    for life_there, at, there, shown in _sights(one)
                    if (life_there, at) == (life, offset)
                ]
                yield one, f"offset {offset} is {known}, and {value}", tuple(evidence[:6])
        judged.add(sights - sum(map(len, lives.values())))


def _why_elsewhere(one: PartitionFacts, shown: Send | Poll | FinalRead | Dump) -> str:
    begun_ns = shown.invoked_ns if isinstance(shown, Send | Poll) else shown.done_ns
    return one.why_elsewhere(begun_ns, shown.done_ns)


def _sights(one: PartitionFacts) -> Iterator[Sight]:
    for send in one.sends:
        if send.outcome == "ok" and send.acks == ACKS_ALL and send.offset >= 0:
            yield one.life_of_send(send), send.offset, send.value, send
    for read in one.reads:
        if isinstance(read, Poll):
            life = one.life_of_read(read)
            for offset, value in read.records:
                yield life, offset, value, read
    if one.final is not None:
        for offset, value in one.final.records:
            yield one.last_life, offset, value, one.final
    for dump in one.dumps:
        for offset, _, value in dump.records:
            if offset < dump.high_watermark:
                yield one.last_life, offset, value, dump


def _who(shown: Send | Poll | FinalRead | Dump) -> str:
    if isinstance(shown, Dump):
        return f"the log of {shown.broker} has"
    if isinstance(shown, FinalRead):
        return "the final read has"
    verb = "was told of" if isinstance(shown, Send) else "read"
    return f"{shown.process} at {seconds(shown.done_ns)} {verb}"


def acknowledged_writes_stay(facts: Facts, judged: Judged) -> Found:
    for one in facts.partitions.values():
        judged.leave_out_all(one.left_out)
        if one.final is None:
            continue
        judged.add(len(one.acked))
        present = frozenset(one.value_at.values())
        for send in one.acked:
            if send.offset < 0:
                is_there = send.value in present or one.may_lack(
                    one.offset_min(send), send.key, send.is_tombstone
                )
            else:
                is_there = _is_there(one, send)
            if not is_there:
                yield one, f"acknowledged {send.value} is lost", (told_send(send), _instead(one, send))


def _is_there(one: PartitionFacts, send: Send) -> bool:
    """Whether a send is where it was said to be, or may be gone."""
    found = one.value_at.get(send.offset)
    if found is None:
        return one.may_lack(send.offset, send.key, send.is_tombstone)
    return found == send.value


def _instead(one: PartitionFacts, send: Send) -> str:
    if send.offset in one.value_at:
        return f"the final read has {one.value_at[send.offset]} at {send.offset}"
    elsewhere = [offset for offset, value in one.value_at.items() if value == send.value]
    return f"it is at {elsewhere}" if elsewhere else told_final(one)


def leaders_lose_with_an_election_only(facts: Facts, judged: Judged) -> Found:
    """With acks=1 a record may go if its leader was replaced before the record was committed."""
    for one in facts.partitions.values():
        told = [send for send in one.sends if send.outcome == "ok" and send.acks == 1]
        if one.final is None:
            judged.leave_out(one.why_no_final, len(told))
            continue
        acked = sorted((send.done_ns, send.offset) for send in one.acked)
        times = [done_ns for done_ns, _ in acked]
        highest = list(accumulate((offset for _, offset in acked), max))
        for send in told:
            if send.offset < 0:
                judged.leave_out("no offset in the answer", 1)
                continue
            is_there = _is_there(one, send)
            if not is_there and one.life_of_send(send) != one.last_life:
                judged.leave_out(one.why_elsewhere(send.invoked_ns, send.done_ns), 1)
                continue
            judged.add(1)
            if is_there:
                continue
            replaced_ns = _replaced_ns(one, send)
            if replaced_ns is None:
                what = f"{send.value} is lost, and its leader was not replaced"
                yield one, what, (told_send(send), _instead(one, send))
                continue
            committed = bisect_left(times, replaced_ns)
            if committed and highest[committed - 1] > send.offset:
                what = (
                    f"{send.value} is lost, and a later record was committed before its leader was replaced"
                )
                evidence = f"offset {highest[committed - 1]} was acknowledged before {seconds(replaced_ns)}"
                yield one, what, (told_send(send), _instead(one, send), evidence)


def _replaced_ns(one: PartitionFacts, send: Send) -> int | None:
    """When the leader that answered was replaced, at the earliest."""
    for leader in one.leaders:
        if send.leader_epoch < 0:
            if leader.at_ns + one.stale_ns >= send.invoked_ns:
                return leader.at_ns - one.stale_ns
        elif leader.leader_epoch > send.leader_epoch:
            return leader.at_ns
    return None


def nothing_is_invented(facts: Facts, judged: Judged) -> Found:
    """Whatever was read was sent there, before, and not refused."""
    for one in facts.partitions.values():
        for read in one.reads:
            if isinstance(read, Poll):
                judged.add(len(read.records))
                for offset, value in read.records:
                    what = _is_invented(facts, one, value, read.done_ns)
                    if what is not None:
                        yield one, f"{value} at {offset} {what}", (told_poll(read), *_origin(facts, value))
        if one.final is not None:
            judged.add(len(one.final.records))
            for offset, value in one.final.records:
                what = _is_invented(facts, one, value, one.final.done_ns)
                if what is not None:
                    yield one, f"{value} at {offset} {what}", (told_final(one), *_origin(facts, value))
        for dump in one.dumps:
            judged.add(len(dump.records))
            for offset, _, value in dump.records:
                what = _is_invented(facts, one, value, dump.done_ns)
                if what is not None:
                    evidence = (f"the log of {dump.broker} has it", *_origin(facts, value))
                    yield one, f"{value} at {offset} {what}", evidence


def _is_invented(facts: Facts, one: PartitionFacts, value: str, read_ns: int) -> str | None:
    send = facts.send_of.get(value)
    if send is None:
        return "was never sent"
    if send.partition != one.partition or send.topic != one.topic:
        return f"was sent to {send.topic}-{send.partition}"
    if send.outcome == "fail":
        return "was refused"
    if send.invoked_ns > read_ns:
        return "was read before it was sent"
    return None


def _origin(facts: Facts, value: str) -> tuple[str, ...]:
    send = facts.send_of.get(value)
    return () if send is None else (told_send(send),)


def nothing_is_doubled(facts: Facts, judged: Judged) -> Found:
    for one in facts.partitions.values():
        if one.final is None:
            judged.leave_out(one.why_no_final, _idempotent_sends(one))
            continue
        first: dict[str, int] = {}
        for offset, value in one.final.records:
            send = facts.send_of.get(value)
            if send is None or not send.is_idempotent:
                continue
            judged.count += 1
            at = first.setdefault(value, offset)
            if at != offset:
                yield one, f"{value} is at {at} and at {offset}", _origin(facts, value)


def _idempotent_sends(one: PartitionFacts) -> int:
    return sum(send.is_idempotent for send in one.sends)


def producers_keep_their_order(facts: Facts, judged: Judged) -> Found:
    """Of idempotent ones, whatever was in flight. Of plain ones with one request in flight, the records that
    are where an acknowledgement said: what the client gave up may come late, or a second time. Where a bit
    flips on the way, a plain librdkafka whose batch is refused again and again sends later records first (its
    requests reach the broker in that order), so these are left out. So is a record whose request waited at a
    former leader, while later ones went to the next: librdkafka has one request in flight at each broker. So
    is the second copy of a record whose first one is in order: librdkafka forms the next request while one is
    in flight, and sends it before it repeats what timed out. So is what was under way when a request of its
    partition timed out: librdkafka puts its records back, and forms requests anew.
    """
    flipped = [one for one in facts.history.faults if one.kind == "packet-corruption"]
    for one in facts.partitions.values():
        if one.final is None:
            judged.leave_out(one.why_no_final, sum(map(_keeps_its_order, one.sends)))
            continue
        last: dict[str, Send] = {}
        first_at: dict[str, int] = {}
        for offset, value in one.final.records:
            send = facts.send_of.get(value)
            if send is None or not _keeps_its_order(send):
                continue
            first_at.setdefault(value, offset)
            if not send.is_idempotent and send.offset != offset:
                continue
            if not send.is_idempotent and any(_is_open(send, window) for window in flipped):
                judged.leave_out("plain, while bits flipped on the way", 1)
                continue
            before = last.get(send.session)
            is_late = before is not None and send.seq < before.seq
            if is_late and not send.is_idempotent and _waited_at_a_former_leader(facts, one, send):
                judged.leave_out("plain, sent before the client knew the next leader", 1)
                continue
            if is_late and not send.is_idempotent and before and first_at[value] < first_at[before.value]:
                judged.leave_out("plain, sent again, and in order where it is first", 1)
                continue
            if is_late and not send.is_idempotent and _was_under_way_at_a_time_out(facts, one, send):
                judged.leave_out("plain, under way when a request timed out", 1)
                continue
            last[send.session] = send
            if before is None:
                continue
            judged.count += 1
            if is_late:
                what = (
                    f"number {send.seq} of session {send.session} is at {offset}, behind number {before.seq}"
                )
                yield one, what, (told_send(before), told_send(send))


def _waited_at_a_former_leader(facts: Facts, one: PartitionFacts, late: Send) -> bool:
    """Whether a record was sent before its session had an answer of another leader, and all that overtook it
    was appended after the election of that one. (What overtook it before that did so at the former leader.)
    A client may hear of an election late: only an answer proves that it has.
    """
    own = _where_acknowledged(facts, one)
    overtook = min(send.offset for send in _overtaking(own, late))
    epochs = _known_epochs(one, own)
    led = [leader for leader in one.leaders if leader.leader != NOBODY]
    for before, now in pairwise(led):
        begin = min((offset for offset, epoch in epochs if epoch >= now.leader_epoch), default=FOREVER)
        if before.leader == now.leader or begin > overtook:
            continue
        answered_ns = min(
            send.done_ns for offset, send in own.items() if offset >= begin and send.session == late.session
        )
        if late.invoked_ns <= answered_ns:
            return True
    return False


def _was_under_way_at_a_time_out(facts: Facts, one: PartitionFacts, late: Send) -> bool:
    """Whether a request of its session timed out before it was answered and after it was sent, and may have
    had records of its partition: one of them had no answer for as long. What overtook it was answered later.
    """
    overtaking = _overtaking(_where_acknowledged(facts, one), late)
    for it in facts.history.timed_out:
        if it.session == late.session and late.invoked_ns <= it.at_ns <= late.done_ns:
            begin_ns = it.at_ns - it.waited_ns
            waiting = any(
                send.session == late.session
                and send.invoked_ns <= begin_ns
                and (send.done_ns < 0 or send.done_ns >= it.at_ns)
                for send in one.sends
            )
            if waiting and all(send.done_ns >= it.at_ns for send in overtaking):
                return True
    return False


def _where_acknowledged(facts: Facts, one: PartitionFacts) -> dict[int, Send]:
    """Records that are where their answer said, by offset."""
    return {
        offset: send
        for offset, value in one.value_at.items()
        if (send := facts.send_of.get(value)) is not None and send.is_ok and send.offset == offset
    }


def _overtaking(own: Mapping[int, Send], late: Send) -> list[Send]:
    """Later records of its session that are before it."""
    return [
        send
        for offset, send in own.items()
        if offset < late.offset and send.session == late.session and send.seq > late.seq
    ]


def _known_epochs(one: PartitionFacts, own: Mapping[int, Send]) -> list[tuple[int, int]]:
    """Offsets of the last life, each with the leader epoch in which its record was appended. Epochs rise
    along a log.
    """
    known = [(offset, send.leader_epoch) for offset, send in own.items()]
    for read in one.reads:
        if isinstance(read, Poll) and one.life_of_read(read) == one.last_life:
            known += read.epochs
    for dump in one.dumps:
        known += [(offset, epoch) for offset, epoch, _ in dump.records]
    return known


def _keeps_its_order(send: Send) -> bool:
    """Whether its producer promises the order of this record."""
    return send.is_idempotent or (send.in_flight == 1 and send.acks != 0 and send.is_ok)


def _is_open(send: Send, window: FaultWindow) -> bool:
    """Whether it was sent before the fault ended, and answered after it began."""
    return send.done_ns >= window.begin_ns and (window.end_ns < 0 or send.invoked_ns <= window.end_ns)


def order_is_real(facts: Facts, judged: Judged) -> Found:
    """What was sent after an acknowledgement is behind what was acknowledged. Of idempotent producers each
    value is there once, so an answer without an offset is about the one that is found.
    """
    for one in facts.partitions.values():
        judged.leave_out_all(one.left_out)
        if one.final is None:
            continue
        latest: Send | None = None
        for offset, value in one.final.records:
            send = facts.send_of.get(value)
            if send is None:
                continue
            is_here = send.offset == offset or (send.offset < 0 and send.is_idempotent)
            is_acked = send.outcome == "ok" and send.acks == ACKS_ALL and is_here
            if is_acked and latest is not None:
                judged.count += 1
                if send.done_ns < latest.invoked_ns:
                    what = f"{latest.value} is before {send.value} at {offset}, and was sent after its answer"
                    yield one, what, (told_send(send), told_send(latest))
            if latest is None or send.invoked_ns > latest.invoked_ns:
                latest = send
