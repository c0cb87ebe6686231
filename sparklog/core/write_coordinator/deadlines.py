"""The deadlines of an app, and the work that is due. Spans of an hour and more are by the wall clock."""

from sparklog.core.coordinator.state_machine import Now
from sparklog.core.write_coordinator.app import App
from sparklog.core.write_coordinator.settings import WriteSettings
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.time import MonotonicMs
from sparklog.model.write_outcomes import MemberState


def next_look_ms(app: App, settings: WriteSettings, now: Now) -> MonotonicMs | None:
    """The app's first deadline; None while it waits for markers alone."""
    if app.head.state is AppState.IDLE:
        return MonotonicMs(now.monotonic_ms + _expiry_left_ms(app, settings, now))
    if app.is_ending:
        return min((deadline_ms for _, _, deadline_ms in app.waiting), default=None)
    silences = [app.heard_ms[number] + settings.member_silence_ms for number in _working(app)]
    return MonotonicMs(min([app.last_sign_ms + app.head.timeout_ms, *silences]))


def has_timed_out(app: App, now: Now) -> bool:
    """Whether the open write had no sign of life for its time-out."""
    is_open = app.head.state is AppState.OPEN
    return is_open and now.monotonic_ms >= app.last_sign_ms + app.head.timeout_ms


def silent_members(app: App, settings: WriteSettings, now: Now) -> list[int]:
    """Working members of the open write that were silent for too long. Finished ones may be silent."""
    if app.head.state is not AppState.OPEN:
        return []
    limit_ms = now.monotonic_ms - settings.member_silence_ms
    return [number for number in _working(app) if app.heard_ms[number] <= limit_ms]


def has_expired(app: App, settings: WriteSettings, now: Now) -> bool:
    return app.head.state is AppState.IDLE and _expiry_left_ms(app, settings, now) == 0


def _expiry_left_ms(app: App, settings: WriteSettings, now: Now) -> int:
    """The time until an idle app expires."""
    span_ms = settings.plain_retention_ms if app.head.is_plain else settings.retention_ms
    # The span bounds it, because the wall clock may have been set back.
    return max(0, min(span_ms, app.head.last_update_ms + span_ms - now.wall_ms))


def _working(app: App) -> list[int]:
    return [number for number in app.living() if app.members[number].state is MemberState.WORKING]
