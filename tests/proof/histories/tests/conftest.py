"""Histories by hand: each call is one thing that a client did, a second after the one before."""

import pytest

from histories.facts import SECOND
from histories.model import (
    Assigned,
    Commit,
    CommittedRead,
    Deleted,
    Dump,
    End,
    FaultWindow,
    FinalRead,
    Finish,
    GroupLost,
    History,
    Init,
    Leader,
    Poll,
    Seek,
    Send,
    TimedOut,
    TopicEvent,
    Written,
)


class Scribe:
    """Writes one history, of partition 0 of one topic unless told otherwise."""

    def __init__(self):
        self.history = History()
        self.now_ns = 0
        self._numbers = {}

    def tick(self, seconds=1):
        self.now_ns += seconds * SECOND
        return self.now_ns

    def begin(self, value, **fields):
        """A send without an answer yet; ``answer`` gives it one."""
        session = fields.pop("session", "s")
        seq = self._numbers[session] = self._numbers.get(session, -1) + 1
        given = {"topic": "t", "partition": 0, "acks": -1, "is_idempotent": True, "process": "producer"}
        given |= {"seq": seq} | fields
        send = Send(value=value, session=session, invoked_ns=self.tick(), **given)
        self.history.sends.append(send)
        return send

    def answer(self, send, outcome="ok", offset=-1, leader_epoch=-1):
        send.outcome, send.offset, send.done_ns, send.leader_epoch = (
            outcome,
            offset,
            self.tick(),
            leader_epoch,
        )
        return send

    def send(self, value, offset, *, leader_epoch=-1, **fields):
        return self.answer(self.begin(value, **fields), "ok", offset, leader_epoch)

    def poll(self, start, *records, process="consumer", leader_epoch=-1, epochs=(), isolation="", **typed):
        """``typed``: the columns and cells of typed rows."""
        begun_ns = self.tick()
        fields = {"isolation": isolation, "leader_epoch": leader_epoch, "epochs": epochs, **typed}
        self.history.reads.append(Poll(process, "t", 0, start, records, begun_ns, self.tick(), **fields))

    def seek(self, offset, process="consumer"):
        self.history.reads.append(Seek(process, "t", 0, offset, self.tick()))

    def end(self, offset, leader_epoch=-1):
        self.history.ends.append(End("asker", "t", 0, self.tick(), self.tick(), offset, leader_epoch))

    def final(self, *records, start=0, end=None, topic="t", high_watermark=-1, **typed):
        last = records[-1][0] + 1 if records else start
        end = last if end is None else end
        read = FinalRead(topic, 0, start, end, list(records), self.tick(), high_watermark, **typed)
        self.history.finals.append(read)

    def dump(self, broker, *records, start=0, end=None, high_watermark=None, digests=None, cells=None):
        end = records[-1][0] + 1 if end is None else end
        mark = end if high_watermark is None else high_watermark
        copies = [(offset, epoch, value) for offset, epoch, value in records]
        batches = [
            (offset, offset, digest) for (offset, _, _), digest in zip(records, digests or (), strict=False)
        ]
        dump = Dump(broker, "t", 0, start, end, mark, copies, batches, self.tick(), cells)
        self.history.dumps.append(dump)

    def init(self, session, outcome="ok", transactional_id="id"):
        """A producer asks for its transactional id, and is answered."""
        begun_ns = self.tick()
        self.history.inits.append(Init("p", transactional_id, session, begun_ns, outcome, self.tick()))

    def finish(self, transaction, how="commit", outcome="ok", write=""):
        """The end of a transaction is asked for, and answered."""
        begun_ns = self.tick()
        finish = Finish("p", transaction, how == "commit", begun_ns, outcome, self.tick(), write=write)
        self.history.finishes.append(finish)

    def written(self, write):
        """The driver of an atomic write is told that a version is committed."""
        self.history.written.append(Written("p", write, self.tick()))

    def begin_commit(self, value, process="member"):
        """A commit without an answer yet; ``answer_commit`` gives it one."""
        commit = Commit(process, "g", "t", 0, value, self.tick())
        self.history.commits.append(commit)
        return commit

    def answer_commit(self, commit, outcome="ok"):
        commit.outcome, commit.done_ns = outcome, self.tick()

    def commit(self, value, outcome="ok", process="member"):
        commit = self.begin_commit(value, process)
        self.answer_commit(commit, outcome)
        return commit

    def committed(self, value, began_ns=None):
        """An answer to OffsetFetch."""
        began_ns = self.tick() if began_ns is None else began_ns
        self.history.committed.append(CommittedRead("member", "g", "t", 0, value, began_ns, self.tick()))

    def assigned(self, member, *shares, generation=1):
        self.history.assigned.append(Assigned("p", "g", generation, member, shares, self.tick()))

    def group_lost(self, group="g"):
        self.history.groups_lost.append(GroupLost(group, self.tick()))

    def topic(self, *, is_created, is_compacted=False):
        self.history.topics.append(TopicEvent("t", is_created, self.tick(), is_compacted))

    def deleted(self, before):
        self.history.deleted.append(Deleted("t", 0, before, self.tick()))

    def leader(self, leader_epoch, leader="broker", *, is_unclean=False):
        self.history.leaders.append(Leader("t", 0, leader, leader_epoch, self.tick(), is_unclean))

    def timed_out(self, session="s", waited_s=5):
        """A request of the session was given up after so long; its records are sent again."""
        self.history.timed_out.append(TimedOut(session, self.tick(), waited_s * SECOND))

    def fault(self, kind, seconds):
        window = FaultWindow(str(len(self.history.faults)), kind, "broker", self.tick())
        self.history.faults.append(window)
        window.end_ns = self.now_ns + seconds * SECOND

    def heal(self):
        self.history.healed_ns = self.tick()


@pytest.fixture
def scribe():
    return Scribe()
