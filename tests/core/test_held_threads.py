"""Which threads are held up, and which only wait for their turn, by what the kernel says of them."""

import pytest

from sparklog.core.held_threads import HELD_MS_MAX, LATE_MS, HeldThread, ThreadState
from sparklog.model.time import MonotonicMs

BEGIN = MonotonicMs(1_000)
MS = 1_000_000


def state(letter: str, *, turns: int = 7, cpu_ns: int = 5 * MS) -> ThreadState:
    return ThreadState(letter, cpu_ns, turns)


def verdicts(*states: ThreadState | None, late_ms: int = 0) -> list[bool]:
    """One for each look, 10 ms apart and ``late_ms`` late."""
    thread = HeldThread(BEGIN)
    return [
        thread.on_look(one, MonotonicMs(BEGIN + 10 * number), late_ms=late_ms)
        for number, one in enumerate(states, 1)
    ]


@pytest.mark.parametrize("late_ms", [0, 30])
@pytest.mark.parametrize(
    ("waits_for", "states", "expected"),
    [
        ("a core", [state("R")] * 8, [False] * 8),
        ("cores, now and then", [state("R", turns=turns) for turns in range(1, 9)], [False] * 8),
        ("the interpreter's lock", [state("S", turns=turns) for turns in range(1, 9)], [False] * 8),
        (
            "a core and that lock, in turns",
            [state("R"), state("S"), state("R"), state("S", turns=8)],
            [False] * 4,
        ),
        ("a disk", [state("D")], [True]),
        ("a disk, after a core", [state("R"), state("R"), state("D")], [False, False, True]),
        ("a disk that answers often", [state("D", turns=turns) for turns in (1, 9)], [True, True]),
        ("another lock, or a pipe", [state("S"), state("S")], [False, True]),
        ("another lock, after a core", [state("R"), *[state("S", turns=8)] * 2], [False, False, True]),
        ("a debugger", [state("t")], [True]),
    ],
)  # fmt: skip
def test_a_thread_is_held_up_by_what_it_waits_for(waits_for, states, expected, late_ms) -> None:
    assert verdicts(*states, late_ms=late_ms) == expected, waits_for


def test_a_thread_that_computes_is_held_up_after_ten_milliseconds_of_cpu() -> None:
    used = (5 * MS, 9 * MS, 15 * MS - 1, 15 * MS)
    assert verdicts(*(state("R", cpu_ns=cpu_ns) for cpu_ns in used)) == [False, False, False, True]


def test_without_the_kernels_notes_a_look_in_time_decides_and_a_late_one_does_not() -> None:
    assert verdicts(None) == [True]
    assert verdicts(None, None, late_ms=LATE_MS) == [False, False]
    assert verdicts(None, late_ms=LATE_MS - 1) == [True]


@pytest.mark.parametrize("seen", [None, state("R")])
def test_no_thread_is_left_to_its_request_for_longer_than_a_tenth_of_a_second(seen) -> None:
    thread = HeldThread(BEGIN)
    before, at_last = MonotonicMs(BEGIN + HELD_MS_MAX - 1), MonotonicMs(BEGIN + HELD_MS_MAX)
    assert not thread.on_look(seen, before, late_ms=50)
    assert thread.on_look(seen, at_last, late_ms=50)
