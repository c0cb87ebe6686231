"""Who waits is told what for; who does not wait hears nothing."""

import threading

import pytest

from sparklog.cli import progress


def test_what_is_done_soon_is_done_silently(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.patience("creating"):
        pass
    assert capsys.readouterr() == ("", "")


def test_nobody_waits_for_more_than_two_seconds_without_a_word() -> None:
    assert progress.PATIENCE_S <= 2


def test_what_takes_long_is_named_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    told = threading.Event()
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        told.set()

    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(progress, "say", say)
    with progress.patience("creating topic 't'"):
        assert told.wait(10)
    assert said == ["creating topic 't' ..."]


def test_a_counter_tells_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "REPORT_EVERY_S", 0.0)
    counter = progress.Counter("records sent")
    counter.add(1_234)
    assert capsys.readouterr().err.startswith("sparklog: records sent: 1,234 (")
