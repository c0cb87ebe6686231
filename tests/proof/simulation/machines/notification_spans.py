"""How long notifications of changed rules are kept: fifteen minutes, and much less in a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from simulation.plans.principals import PrincipalPlan
from sparklog.controller import notification_purge

LOOK_MS: Final = 200


@contextmanager
def short_notification_spans(plan: PrincipalPlan | None) -> Iterator[None]:
    """For the length of a run."""
    before = notification_purge.KEPT_MS, notification_purge.LOOK_MS
    if plan is not None:
        _set_spans(plan.kept_ms, LOOK_MS)
    try:
        yield
    finally:
        _set_spans(*before)


def _set_spans(kept_ms: int, look_ms: int) -> None:
    for name, value in (("KEPT_MS", kept_ms), ("LOOK_MS", look_ms)):
        setattr(notification_purge, name, value)
