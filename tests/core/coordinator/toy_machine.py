"""A state machine of registers, the least that a shard can drive, and a shard that drives it."""

from dataclasses import dataclass, field

from sparklog.core.coordinator.actions import Producer, Reply, StateRecord, Token, Write, WriteId, Written
from sparklog.core.coordinator.attention import Attention
from sparklog.core.coordinator.shard import Append, Committed, ConfirmEpoch, Shard
from sparklog.core.coordinator.state_machine import Now
from sparklog.model.errors import ErrorCode, WireError

SESSION_MS = 18_000
LIMIT_MS = 6_000
WAIT_MS = 5_000
BATCH_BYTES = 1_000


@dataclass(frozen=True)
class Asked:
    """Put with a ``value``, else Get; a Put that ``holds`` its key is as a group's new generation, one with a
    ``producer`` as an offset in that producer's transaction.
    """

    key: str | None
    value: str | None = None
    holds: bool = False
    producer: Producer | None = None
    is_invalid: bool = False

    def invalid(self):
        return "invalid" if self.is_invalid else None

    def while_loading(self):
        return "loading"

    def refused(self, error):
        return error


@dataclass
class Registers:
    """Answers a Get with the value, and a Put with "done" once it is written, or with the outcome's error."""

    values: dict = field(default_factory=dict)
    puts: dict = field(default_factory=dict)
    deadline_ms: int | None = None
    times: list = field(default_factory=list)
    gone: list = field(default_factory=list)
    seen: list = field(default_factory=list)
    """Keys as they are written, and the ends of transactions: in the order in which the machine sees them."""
    is_loaded: bool = False

    def replay(self, record):
        self.values[record.key] = record.value

    def replay_pending(self, record, producer_id):
        self.seen.append((producer_id, record))

    def replay_end(self, producer_id, is_commit):
        self.seen.append((producer_id, is_commit))

    def replay_loss(self):
        self.seen.append("loss")

    def on_end(self, producer_id, is_commit, now):
        self.seen.append((producer_id, is_commit))
        return []

    def topics(self):
        return frozenset(self.values)

    def on_loaded(self, now):
        self.is_loaded = True
        return []

    def on_request(self, token, request, now):
        if request.value is None:
            return [Reply(token, self.values.get(request.key))]
        write_id = WriteId(len(self.puts) + 1)
        record = StateRecord(request.key, request.value)
        self.puts[write_id] = [token, record]
        return [Write(write_id, request.key, (record,), request.holds, request.producer)]

    def on_written(self, write_id, outcome, now):
        token, record = self.puts[write_id]
        if isinstance(outcome, Written):
            self.values[record.key] = record.value
            self.seen.append(record.key)
        if token is None:
            return []
        self.puts[write_id][0] = None
        return [Reply(token, "done" if isinstance(outcome, Written) else outcome.error)]

    def on_time(self, now):
        self.times.append(now.monotonic_ms)
        self.deadline_ms = None
        return []

    def next_deadline_ms(self):
        return self.deadline_ms

    def on_topics_deleted(self, topics, now):
        self.gone += topics
        return []

    def on_resigned(self):
        waiting = [token for token, _ in self.puts.values() if token is not None]
        return [Reply(token, ErrorCode.not_coordinator) for token in waiting]

    def check_invariants(self):
        pass


def encode(record):
    if "unwritable" in record.value:
        raise WireError("a string of 40000 bytes")
    return record.key.encode(), record.value.encode()


class Driven:
    """A shard with registers. ``answers`` by token; ``appends``, ``confirmations``: what it asked for."""

    def __init__(self, *, is_active=True):
        self.now_ms = 1_000_000
        self.attention = Attention(SESSION_MS, self.now_ms)
        self.machine = Registers()
        self.shard = Shard(
            self.machine, self.attention, encode=encode, wait_max_ms=WAIT_MS, batch_bytes_max=BATCH_BYTES
        )
        self.answers, self.appends, self.confirmations = {}, [], 0
        self.end_offset = 0
        self._take(self.shard.begin())
        if is_active:
            self.load()
            self.confirm()

    @property
    def now(self):
        return Now(self.now_ms, self.now_ms)

    def _take(self, actions):
        for action in actions:
            match action:
                case Reply(token, response):
                    assert token not in self.answers, "answered twice"
                    self.answers[token] = response
                case Append():
                    self.appends.append(action)
                case ConfirmEpoch():
                    self.confirmations += 1
        self.shard.check_invariants()

    def load(self):
        self._take(self.shard.on_loaded(self.now))

    def confirm(self):
        standstills = self.attention.standstills(self.now_ms)
        self._take(self.shard.on_confirmed(standstills, self.now))

    def ask(self, token, key, value=None, **options):
        self._take(self.shard.on_request(Token(token), Asked(key, value, **options), self.now))
        return self.answers.get(token)

    def outcome(self, outcome, append=-1):
        self._take(self.shard.on_appended(self.appends[append].append_id, outcome, self.now))

    def commit(self):
        self.end_offset += len(self.appends[-1].records)
        self.outcome(Committed(self.end_offset))

    def end(self, producer_id, offset, *, is_commit=True):
        self._take(self.shard.on_end(producer_id, is_commit, offset, self.now))

    def high_watermark(self, offset):
        self._take(self.shard.on_high_watermark(offset, self.now))

    def time(self, passed_ms, *, with_ticks=True):
        """Time passes, in steps of a second, or in one step as for a process that stood still."""
        for step_ms in [1_000] * (passed_ms // 1_000) if with_ticks else [passed_ms]:
            self.now_ms += step_ms
            self.attention.standstills(self.now_ms)
        self._take(self.shard.on_time(self.now))

    def resign(self):
        self._take(self.shard.resign())

    def appended(self, append=-1):
        return [value.decode() for _, value in self.appends[append].records]
