"""A coordinator of writes in conversation with tasks and drivers: each record is taken by the log at once,
unless a test says otherwise; markers are written when the test says so.
"""

import uuid

from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.transaction_coordinator.requests import MarkersWritten, VerifyPartitions
from sparklog.core.write_coordinator.requests import EndWrite, OpenWrite
from sparklog.core.write_coordinator.responses import NO_PRODUCER_ID
from sparklog.core.write_coordinator.settings import WriteSettings
from sparklog.core.write_coordinator.write_machine import WriteMachine
from sparklog.model.ids import TopicPartition
from sparklog.model.write_ids import write_and_member
from sparklog.model.write_outcomes import MemberState, OpenOutcome
from tests.core.coordinator.machine_dialogue import MachineDialogue

APP = "query-7"
TIMEOUT_MS = 300_000
SILENCE_MS = 30_000
ORDERS = TransactionTopic("orders", uuid.UUID(int=1), (0, 1))
BILLS = TransactionTopic("bills", uuid.UUID(int=2), (0,))


class Dialogue(MachineDialogue):
    def __init__(self, settings=None, leader_epoch=0):
        self.settings, self.leader_epoch = settings or WriteSettings(), leader_epoch
        super().__init__(WriteMachine(self.settings, leader_epoch))
        self.write_number = 100
        self.load(())

    @property
    def head(self):
        return self.machine.apps[APP].head

    @property
    def state(self):
        """The state, and the version that was committed last."""
        return self.head.state.name.lower(), self.head.committed_version

    @property
    def ends(self):
        """How the write of each member ended for which markers were asked."""
        return {
            write_and_member(sent.producer_id): "committed" if sent.is_commit else "aborted"
            for sent in self.sent
        }

    def ask(self, request):
        """The answer, or the token of the request while it waits."""
        token = self.submit(request)
        return self.answers.get(token, token)

    def successor(self):
        """The next coordinator: it knows what is in the log, as compaction leaves it."""
        latest = {}
        for record in self.log:
            latest.pop(record.key, None)
            latest[record.key] = record
        other = Dialogue(self.settings, self.leader_epoch + 1)
        other.now_ms, other.write_number = self.now_ms, self.write_number
        other.load(latest.values())
        return other

    # What tasks do

    def open(
        self,
        version=1,
        attempt="a",
        run="run",
        producer_id=NO_PRODUCER_ID,
        topics=(ORDERS,),
        state=MemberState.WORKING,
        timeout_ms=TIMEOUT_MS,
        is_plain=False,
    ):
        """The answer to an attempt, which is asked again with a number if the coordinator needs one."""

        def request(fresh):
            return OpenWrite(
                app=APP,
                version=version,
                run=run,
                attempt=attempt,
                timeout_ms=timeout_ms,
                is_plain=is_plain,
                topics=topics,
                state=state,
                producer_id=producer_id,
                fresh_write_number=fresh,
            )

        answer = self.ask(request(None))
        if getattr(answer, "outcome", None) is OpenOutcome.NEEDS_WRITE_NUMBER:
            self.write_number += 1
            answer = self.ask(request(self.write_number))
        return answer

    def member(self, version=1, attempt="a", run="run", topics=(ORDERS,)):
        """A new member: its producer id."""
        answer = self.open(version, attempt, run, topics=topics)
        assert answer.outcome is OpenOutcome.MEMBER
        return answer.producer_id

    def says(self, producer_id, state, version=1, attempt="a", run="run"):
        """What a member that says ``state`` is told."""
        return self.open(version, attempt, run, producer_id, topics=(), state=state).outcome.name

    def finished(self, version=1, attempt="a", run="run", topics=(ORDERS,)):
        """A member that is done: its producer id."""
        producer_id = self.member(version, attempt, run, topics)
        assert self.says(producer_id, MemberState.FINISHED, version, attempt, run) == "MEMBER"
        return producer_id

    def verify(self, producer_id, *numbers, epoch=0):
        places = tuple(TopicPartition("orders", number) for number in numbers)
        answer = self.ask(VerifyPartitions(APP, producer_id, epoch, places))
        return [answer.errors[place].name for place in places]

    # What drivers do

    def end(self, is_commit, *winners, version=1, run="run"):
        """The outcome's name; or the token, while a commit waits."""
        answer = self.ask(
            EndWrite(app=APP, version=version, run=run, is_commit=is_commit, is_plain=False, winners=winners)
        )
        return answer if isinstance(answer, int) else answer.outcome.name

    def commit(self, *winners, version=1, run="run"):
        return self.end(True, *winners, version=version, run=run)

    def abort(self, version=1, run="run"):
        return self.end(False, version=version, run=run)

    # What leaders do

    def write_markers(self):
        """All markers that were asked for are written."""
        markers, self.markers = self.markers, []
        for sent in markers:
            self.ask(MarkersWritten(APP, sent.producer_id, sent.producer_epoch, sent.is_commit))

    def committed(self, version=1):
        """A version with one member is committed, whose producer id is returned."""
        producer_id = self.finished(version, attempt=f"of {version}")
        token = self.commit(producer_id, version=version)
        self.write_markers()
        assert self.answers[token].outcome.name == "COMMITTED"
        return producer_id
