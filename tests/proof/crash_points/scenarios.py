"""What is done while every system call is a point of crash. A scenario is prepared unseen, then watched."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from crash_points.bench import BOOT, OTHER_BOOT, Bench
from sparklog.model.ids import TopicPartition
from sparklog.storage.cleaner.view import CleaningAborted

T = TopicPartition("t", 0)
TABLE = TopicPartition("table", 0)


@dataclass(frozen=True)
class Scenario:
    name: str
    prepare: Callable[[Bench], None]
    act: Callable[[Bench], None]
    boot_id: str = BOOT
    """The machine's boot while it runs."""


def _nothing(bench: Bench) -> None:
    """An empty directory."""


def _settled(bench: Bench) -> None:
    """A log of some segments, all of it on the medium, and known to be."""
    bench.start()
    bench.create("t")
    bench.lead(T)
    for nth in range(9):
        bench.append(T, producer=nth % 2 + 1)
        if nth == 5:
            bench.lead(T)
    bench.append(T, producer=3)
    bench.flush(T)
    bench.checkpoint()
    bench.commit(T)


def _first_start(bench: Bench) -> None:
    bench.operation("first start")
    bench.start()
    bench.operation("create a log")
    bench.create("t")
    bench.lead(T)
    bench.operation("produce")
    bench.append(T)
    bench.append(T, producer=1)
    bench.operation("flush")
    bench.flush(T)
    bench.operation("checkpoint")
    bench.checkpoint()
    bench.commit(T)


def _produce(bench: Bench) -> None:
    bench.operation("produce")
    bench.append(T, producer=1)
    bench.append(T, size=300, producer=2)
    bench.append(T, batches=3)
    bench.operation("flush")
    bench.flush(T)
    bench.operation("produce")
    bench.append(T, size=5_000)
    bench.lead(T)
    bench.append(T, size=2_600, producer=1)
    bench.append(T, producer=1)
    bench.operation("checkpoint")
    bench.checkpoint()
    bench.commit(T)
    bench.operation("flush")
    bench.flush(T)
    bench.operation("checkpoint")
    bench.checkpoint()


def _roll(bench: Bench) -> None:
    bench.operation("roll")
    for nth in range(12):
        bench.append(T, producer=nth % 3 + 1)
        if nth == 4:
            bench.lead(T)
    bench.roll(T)
    bench.append(T)
    bench.operation("flush")
    bench.flush(T)
    bench.operation("checkpoint")
    bench.checkpoint()


def _truncate(bench: Bench) -> None:
    bench.append(T)
    bench.append(T, producer=1)
    bench.operation("truncate")
    bench.truncate(T, bench.kept[T].end - 2)
    bench.lead(T)
    bench.append(T, producer=2)
    bench.truncate(T, 16)
    bench.lead(T)
    bench.append(T, batches=2)
    bench.truncate(T, 5)
    bench.lead(T)
    bench.append(T, size=200)
    bench.append(T, size=200)
    bench.operation("flush")
    bench.flush(T)
    bench.operation("checkpoint")
    bench.checkpoint()
    bench.operation("truncate")
    bench.truncate(T, 0)
    bench.append(T)


def _begin_anew(bench: Bench) -> None:
    bench.append(T)
    bench.operation("begin anew")
    bench.begin_anew(T, bench.kept[T].end)
    bench.lead(T)
    bench.append(T, producer=1)
    bench.begin_anew(T, 90)
    bench.append(T, producer=1)
    bench.flush(T)
    bench.checkpoint()
    bench.begin_anew(T, 40)
    bench.append(T)
    bench.flush(T)


def _retention(bench: Bench) -> None:
    bench.operation("retention")
    bench.delete_records(T, 9)
    bench.retain(T)
    bench.checkpoint()
    bench.append(T)
    bench.clock.now_ms += 100_000
    bench.timestamp = bench.clock.now_ms
    bench.roll(T)
    bench.append(T)
    bench.append(T)
    bench.retain(T)
    bench.flush(T)
    bench.checkpoint()
    bench.clock.now_ms += 100_000
    bench.retain(T)
    bench.append(T)
    bench.flush(T)


def _with_transactions(bench: Bench) -> None:
    """Transactions of three producers, of which one is open, over several segments."""
    _settled(bench)
    for nth in range(6):
        bench.append(T, producer=11 + nth % 3, in_transaction=True)
        if nth == 2:
            bench.end(T, 11, commits=False)
    bench.end(T, 12, commits=False)
    bench.end(T, 13, commits=True)
    bench.flush(T)
    bench.checkpoint()
    bench.commit(T)


def _transactions(bench: Bench) -> None:
    bench.operation("abort a transaction")
    bench.append(T, producer=12, in_transaction=True)
    before_marker = bench.kept[T].end
    bench.end(T, 11, commits=False)
    bench.roll(T)
    bench.append(T, producer=13, in_transaction=True)
    bench.end(T, 12, commits=False)
    bench.operation("flush")
    bench.flush(T)
    bench.operation("checkpoint")
    bench.checkpoint()
    bench.operation("truncate a marker")
    bench.truncate(T, before_marker)
    bench.lead(T)
    bench.append(T, producer=1)
    bench.operation("abort a transaction")
    bench.end(T, 11, commits=False)
    bench.end(T, 12, commits=True)
    bench.operation("flush")
    bench.flush(T)


def _killed_with_transactions(bench: Bench) -> None:
    """Aborted transactions of which the last are not flushed, and an open one."""
    _with_transactions(bench)
    bench.end(T, 11, commits=False)
    bench.append(T, producer=12, in_transaction=True)
    bench.roll(T)
    bench.end(T, 12, commits=False)
    bench.append(T, producer=13, in_transaction=True)
    bench.stop(clean=False)


def _recover_transactions(bench: Bench) -> None:
    bench.operation("recovery of aborted transactions")
    bench.start()
    bench.end(T, 13, commits=False)
    bench.flush(T)


def _a_table(bench: Bench) -> None:
    bench.start()
    bench.create("table")
    bench.lead(TABLE)
    for nth in range(16):
        bench.append(TABLE, count=1, producer=nth % 3 + 1, key=f"key{nth % 4}")
        if nth == 7:
            bench.lead(TABLE)
    for nth in range(6):
        bench.append(TABLE, count=1, producer=nth % 3 + 1, key=f"other{nth}")
    bench.roll(TABLE)
    bench.append(TABLE, count=1, key="last")
    bench.flush(TABLE)
    bench.checkpoint()
    bench.commit(TABLE)


def _compaction(bench: Bench) -> None:
    bench.operation("compaction")
    bench.clean(TABLE)
    for nth in range(5):
        bench.append(TABLE, count=1, key=f"key{nth % 3}")
    bench.roll(TABLE)
    bench.append(TABLE, count=1, key="more")
    bench.clean(TABLE)
    bench.operation("flush")
    bench.flush(TABLE)
    bench.checkpoint()


def _cut_while_cleaning(bench: Bench) -> None:
    bench.operation("truncate during compaction")
    cut: list[bool] = []

    def between() -> None:
        if not cut:
            cut.append(True)
            bench.truncate(TABLE, 14)

    try:
        bench.clean(TABLE, between)
    except CleaningAborted:
        bench.append(TABLE, count=1, key="key1")
        bench.flush(TABLE)
        return
    raise AssertionError("the cleaner did not notice that its log was cut")


def _delete(bench: Bench) -> None:
    bench.operation("delete a log")
    bench.append(T)
    bench.delete(T)
    bench.operation("create a log")
    bench.create("t", uuid.UUID(int=6))
    bench.append(T)
    bench.flush(T)
    bench.operation("set a log aside")
    bench.delete(T, aside=True)


def _clean_stop(bench: Bench) -> None:
    bench.append(T, producer=1)
    bench.roll(T)
    bench.append(T, producer=2)
    bench.operation("clean stop")
    bench.stop(clean=True)
    bench.operation("start after a clean stop")
    bench.start()
    bench.append(T)


def _killed(bench: Bench) -> None:
    """What SIGKILL leaves: appended and not flushed, some of it in segments of its own."""
    _settled(bench)
    for nth in range(9):
        bench.append(T, producer=nth % 2 + 1)
    bench.stop(clean=False)


def _start_after_kill(bench: Bench) -> None:
    bench.operation("recovery")
    bench.start()
    bench.append(T)
    bench.flush(T)


def _start_on_another_boot(bench: Bench) -> None:
    bench.operation("recovery")
    bench.start(OTHER_BOOT)
    bench.append(T)


def _start_of_a_suspect(bench: Bench) -> None:
    bench.operation("recovery of a suspect")
    bench.start(is_suspect=True)
    bench.append(T)


SCENARIOS = (
    Scenario("first start", _nothing, _first_start),
    Scenario("produce", _settled, _produce),
    Scenario("roll", _settled, _roll),
    Scenario("truncate", _settled, _truncate),
    Scenario("begin anew", _settled, _begin_anew),
    Scenario("retention", _settled, _retention),
    Scenario("transactions", _with_transactions, _transactions),
    Scenario("start with transactions", _killed_with_transactions, _recover_transactions),
    Scenario("compaction", _a_table, _compaction),
    Scenario("truncate during compaction", _a_table, _cut_while_cleaning),
    Scenario("delete", _settled, _delete),
    Scenario("clean stop", _settled, _clean_stop),
    Scenario("start after SIGKILL", _killed, _start_after_kill),
    Scenario("start on another boot", _killed, _start_on_another_boot, OTHER_BOOT),
    Scenario("start of a suspect", _killed, _start_of_a_suspect),
)
