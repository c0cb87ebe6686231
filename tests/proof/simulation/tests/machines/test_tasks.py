"""A simulated broker's calls to the controller wait until there is one."""

from types import SimpleNamespace

import pytest

from simulation.machines.tasks import SimulatedLink
from simulation.schedule import US_PER_MS, Process, Schedule

TIMEOUT_MS = 100


class Waiting:
    """A broker whose call waits for a controller, and what becomes of the call."""

    def __init__(self, elected_after_ms=None):
        self.schedule, self.became = Schedule(), []
        process = Process(self.schedule, "broker-1")
        self.link = SimulatedLink(process, "broker-1", SimpleNamespace(call=self._sent))
        if elected_after_ms is not None:
            self.schedule.after(elected_after_ms * US_PER_MS, process, self._elect)
        self.link.call(
            "hello", timeout_ms=TIMEOUT_MS, on_response=self.became.append, on_failure=self._failed
        )
        self.schedule.run_until(2 * TIMEOUT_MS * US_PER_MS)

    def _elect(self):
        self.link.lead_to(SimpleNamespace(host="driver"))

    def _sent(self, _process, _host, address, message, *_of_call, **_options):
        self.became.append(f"{message} sent to {address}")
        return SimpleNamespace(abandon=lambda: None)

    def _failed(self, error):
        self.became.append(str(error))


@pytest.mark.parametrize("elected_after_ms", [1, TIMEOUT_MS], ids=["soon", "in the moment of the time-out"])
def test_a_call_is_sent_once_a_controller_is_elected(elected_after_ms):
    assert Waiting(elected_after_ms).became == ["hello sent to driver"]


def test_a_call_fails_at_its_time_out_without_a_controller():
    assert Waiting().became == ["no controller is elected"]
