"""Spans of atomic writes that are no settings of brokers, as short as a run needs them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from simulation.plans.writes import end_wait_ms, member_silence_ms
from sparklog.core.write_coordinator.settings import WriteSettings


@contextmanager
def short_write_spans(seed: int) -> Iterator[None]:
    """For the length of a run."""
    original: Any = vars(WriteSettings)["of"]

    def of(cls: type[WriteSettings], config: Any) -> WriteSettings:
        settings: WriteSettings = original.__get__(None, cls)(config)
        return replace(settings, member_silence_ms=member_silence_ms(seed), end_wait_ms=end_wait_ms(seed))

    setattr(WriteSettings, "of", classmethod(of))  # noqa: B010 (no type checker knows such an assignment)
    try:
        yield
    finally:
        setattr(WriteSettings, "of", original)  # noqa: B010
