"""A coordinator's state machine in conversation: each write is taken by the log at once, unless a test says
otherwise.
"""

from sparklog.core.coordinator.actions import Reply, StateRecord, Tell, Token, Write, Written
from sparklog.core.coordinator.state_machine import Now
from sparklog.core.transaction_coordinator.messages import SendMarkers
from sparklog.model.time import MonotonicMs, WallMs

WALL_MS = 1_000_000


class MachineDialogue:
    """``takes`` False leaves writes in ``writes``, for the test to say what became of them."""

    def __init__(self, machine, *, takes=True):
        self.machine = machine
        self.takes = takes
        self.now_ms = 0
        self.tokens = 0
        self.log: list[StateRecord] = []
        self.writes: list[Write] = []
        self.markers: list[SendMarkers] = []
        """Those that are asked for, and not written by the test."""
        self.sent: list[SendMarkers] = []
        """All that were ever asked for."""
        self.answers: dict[Token, object] = {}

    @property
    def now(self):
        return Now(MonotonicMs(self.now_ms), WallMs(WALL_MS + self.now_ms))

    def submit(self, request):
        """The request's token: its answer may be in ``answers``."""
        self.tokens += 1
        token = Token(self.tokens)
        self.carry_out(self.machine.on_request(token, request, self.now))
        return token

    def become(self, write, outcome=None):
        outcome = outcome or Written()
        if isinstance(outcome, Written):
            self.log.extend(write.records)
        self.carry_out(self.machine.on_written(write.write_id, outcome, self.now))

    def pass_time(self, span_ms):
        self.now_ms += span_ms
        self.carry_out(self.machine.on_time(self.now))

    def load(self, records):
        """The machine reads ``records``, and begins to coordinate."""
        self._replay(records)
        self.carry_out(self.machine.on_loaded(self.now))

    def load_after_loss(self, found, since):
        """As ``load``; an election that may have lost records found those of ``found``."""
        self._replay(found)
        self.machine.replay_loss()
        self.load(since)

    def _replay(self, records):
        for record in records:
            self.log.append(record)
            self.machine.replay(record)

    def carry_out(self, actions):
        self.machine.check_invariants()
        for action in actions:
            match action:
                case Reply(token, response):
                    assert token not in self.answers
                    self.answers[token] = response
                case Tell(message):
                    self.markers.append(message)
                    self.sent.append(message)
                case Write() if self.takes:
                    self.become(action)
                case Write():
                    self.writes.append(action)
