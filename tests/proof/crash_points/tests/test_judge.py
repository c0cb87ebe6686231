"""What the judge of crash points takes for the log that it was, and what for a mixture."""

from uuid import UUID

from crash_points.judge import Found, compare_batches, compare_epochs
from crash_points.promises import Batch, State


def state(start: int, end: int, *, epoch: int = 1) -> State:
    """Batches of two offsets each."""
    batches = tuple(Batch(at, at + 2, epoch, 100 * epoch + at) for at in range(start, end, 2))
    return State(batches, start, end, ((epoch, start),))


def troubles(batches: tuple[Batch, ...], *states: State) -> list[str]:
    found = Found(batches, batches[0].base_offset, batches[-1].next_offset, (), (), UUID(int=1), ())
    return compare_batches(found, states, [])


def test_segments_that_retention_removed_may_be_back_in_front_of_what_came_since() -> None:
    old, empty, new = state(0, 4), state(4, 4), state(4, 6)
    assert troubles(old.batches + new.batches, old, empty, new) == []
    assert troubles(state(0, 8).batches, state(0, 6), state(2, 6), state(4, 8)) == []


def test_what_was_cut_off_or_begun_anew_may_not_be_in_front_of_what_came_since() -> None:
    new = state(4, 6, epoch=2)
    cut = State((*state(0, 2).batches, *state(2, 6, epoch=2).batches), 0, 6)
    for states in (
        (state(0, 4), state(6, 6), state(6, 8, epoch=2)),
        (state(0, 6), state(0, 2), cut),
        (state(0, 6), state(4, 4), new),
    ):
        mixed = (*state(0, 4).batches, *states[-1].batches[-1:])
        assert [one for one in troubles(mixed, *states) if "invented or mixed" in one], states


def test_a_start_that_was_not_written_yet_lets_the_epochs_begin_where_the_batches_do() -> None:
    """The segment before is gone, and the log began in the middle of the next one when it was."""
    batches = state(8, 12).batches + state(12, 16, epoch=2).batches
    began_later = State(batches[1:], 9, 16, ((1, 9), (2, 12)))
    for epochs, is_right in (
        (((1, 8), (2, 12)), True),
        (((1, 9), (2, 12)), True),
        (((1, 8), (2, 11)), False),
        (((2, 8),), False),
        ((), False),
    ):
        found = Found(batches, 8, 16, epochs, (), UUID(int=1), ())
        assert (compare_epochs(found, [began_later]) == []) is is_right, epochs
