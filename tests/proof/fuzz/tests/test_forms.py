"""Forms read and write what the codec does, often enough to mean something; planted bugs are found."""

from collections.abc import Callable

import pytest

from fuzz.forms import Case, play
from sparklog.wire.codec import Request
from sparklog.wire.forms.produce_form import AnswerForm, ProduceForm

CASES = 400

Plant = Callable[[pytest.MonkeyPatch], None]


def play_all() -> list[Case]:
    return [play(1, number) for number in range(CASES)]


def test_each_frame_is_the_same_request_by_its_form_and_by_its_schema() -> None:
    cases = play_all()
    assert sum(case.by_form for case in cases) > CASES
    assert {case.version for case in cases if case.by_form} == {5, 6, 7, 8, 9}
    assert sum(case.by_schema for case in cases) > CASES
    assert sum(case.refused for case in cases) > CASES


def _without(name: str, part: Callable[[ProduceForm, memoryview], memoryview]) -> Plant:
    """A form that takes one of its parts as it comes."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        read = ProduceForm.read

        def lenient(self: ProduceForm, frame: memoryview) -> Request | None:
            setattr(self, name, bytes(part(self, frame)))
            return read(self, frame)

        patch.setattr(ProduceForm, "read", lenient)

    return plant


def _another_partition(patch: pytest.MonkeyPatch) -> None:
    write = AnswerForm.write
    patch.setattr(AnswerForm, "write", lambda self, one, index, *more: write(self, one, index ^ 1, *more))


@pytest.mark.parametrize(
    "plant",
    [
        _without("_api", lambda _, frame: frame[:4]),
        _without("_front", lambda form, frame: frame[8 : form._partition_at]),
        _without("_rest", lambda form, frame: frame[len(frame) - len(form._rest) :]),
        _another_partition,
    ],
    ids=["api", "front", "rest", "partition"],
)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        play_all()
