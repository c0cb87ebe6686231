"""Metrics of operations: what works and waits, since when, and how they ended."""

from types import SimpleNamespace

from sparklog.controller.metrics import controller_metrics
from sparklog.core.controller.cluster_view import view_of
from sparklog.core.controller.events.event_log import EventLog
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.looks import OperationLooks
from sparklog.core.controller.operations.operation_writes import Wait
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.operations import Operation, OperationState
from sparklog.model.ids import BrokerId, ControllerEpoch
from sparklog.model.settings.config import BrokerConfig

DRAIN, STOP = OperationKind.drain, OperationKind.stop
WALL_BEGAN_MS = 1_700_000_000_000


def image_of(*operations):
    image = ClusterImage(BrokerConfig.parse({}), ControllerEpoch(1), 0)
    image.operations.update({one.id: one for one in operations})
    return image


def values(image, looks, ended):
    view = view_of(image, EventLog(ControllerEpoch(1)), looks, ended)
    candidate = SimpleNamespace(
        view=view, lossy_elections=0, wall_ms_of=lambda monotonic_ms: WALL_BEGAN_MS + monotonic_ms
    )
    found = [one for one in controller_metrics(candidate) if "operations" in one.name]
    return {
        (
            one.name.removeprefix("sparklog_controller_operations"),
            *(value for _, value in one.labels),
        ): one.value
        for one in found
        if one.value
    }


def test_what_works_what_waits_and_how_operations_ended():
    running = [
        Operation(number, kind, (BrokerId(number),)) for number, kind in ((1, DRAIN), (2, STOP), (3, STOP))
    ]
    looks = OperationLooks(waits={1: (), 2: (Wait("broker 1"),), 3: ()}, waiting_since_ms={2: 5_000})
    ended = {(DRAIN, OperationState.done): 4, (STOP, OperationState.failed): 1}
    assert values(image_of(*running), looks, ended) == {
        ("", "drain", "working"): 1,
        ("", "stop", "working"): 1,
        ("", "stop", "waiting"): 1,
        ("_waiting_since_milliseconds",): WALL_BEGAN_MS + 5_000,
        ("_ended_total", "drain", "done"): 4,
        ("_ended_total", "stop", "failed"): 1,
    }


def test_where_nothing_is_under_way_all_are_zero_and_there():
    assert values(image_of(), OperationLooks(), {}) == {}
