"""What a request uses of quotas, by a clock and a CPU time that are moved by hand."""

import threading

import pytest

from sparklog.broker.client_quotas import ENTITIES_SHOWN_MAX, ClientQuotas, RequestMeter
from sparklog.core.apis.api import Quota
from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.network.thread_state import ThreadTime
from tests.broker.conftest import ManualClock

ALICE = "/config/users/alice"
SECOND_NS = 1_000_000_000


class World:
    def __init__(self):
        self.clock = ManualClock()
        self.thread, self.cpu_ns = 1, 0
        self.quotas = ClientQuotas(
            Windows(), self.clock, threading.Lock(), lambda: ThreadTime(self.thread, self.cpu_ns)
        )

    def set(self, path, **quotas):
        self.quotas.put(path, {key: str(value) for key, value in quotas.items()})

    def meter(self, quota=Quota.request, user="alice", frame_bytes=0):
        return RequestMeter(self.quotas, user, "app", quota, frame_bytes)

    def request(self, cpu_s, *, is_timed=True, user="alice"):
        """The delay of a request that takes so much CPU time."""
        meter = self.meter(user=user)
        with meter.working():
            self.cpu_ns += int(cpu_s * SECOND_NS)
            return meter.delay_ms(is_timed=is_timed)


@pytest.fixture
def world():
    return World()


def test_without_quotas_and_once_they_are_removed_nothing_is_metered(world):
    assert not world.quotas.is_active
    world.set(ALICE, producer_byte_rate=1)
    assert (world.quotas.is_active, world.quotas.is_timed) == (True, False)
    world.set(ALICE, request_percentage=1)
    assert (world.quotas.is_active, world.quotas.is_timed) == (True, True)
    world.quotas.replace({})
    assert (world.quotas.is_active, world.quotas.is_timed) == (False, False)


def test_a_quota_of_connections_or_of_mutations_meters_no_request(world):
    world.set(ALICE, controller_mutation_rate=1)
    world.set("/config/ips/<default>", connection_creation_rate=1)
    assert not world.quotas.is_active


def test_bytes_written_are_those_of_the_request(world):
    world.set(ALICE, producer_byte_rate=100)
    assert world.meter(Quota.produce, frame_bytes=3_000).delay_ms() == 20_000
    assert world.meter(Quota.produce, "bob", frame_bytes=3_000).delay_ms() == 0
    assert world.meter(Quota.fetch, frame_bytes=3_000).delay_ms() == 0


def test_a_read_that_is_delayed_does_not_count(world):
    world.set(ALICE, consumer_byte_rate=100)
    assert world.meter(Quota.fetch).delay_of_read_ms(1_000) == 0
    assert world.meter(Quota.fetch).delay_of_read_ms(500) == 5_000
    assert world.meter(Quota.fetch).delay_of_read_ms(0) == 0


def test_a_read_is_as_large_as_ten_seconds_of_the_quota_at_most(world):
    world.set(ALICE, consumer_byte_rate=100)
    assert world.meter(Quota.fetch).read_bytes_max() == 1_000
    assert world.meter(Quota.fetch, "bob").read_bytes_max() is None


def test_a_request_is_charged_once(world):
    world.set(ALICE, producer_byte_rate=100)
    meter = world.meter(Quota.produce, frame_bytes=1_000)
    assert meter.delay_ms() == meter.delay_ms() == 0
    assert world.meter(Quota.produce, frame_bytes=0).delay_ms() == 0


def test_cpu_time_delays_for_one_sample_at_most_and_not_those_of_other_users(world):
    world.set(ALICE, request_percentage=10)
    assert world.request(0.9) == 0
    assert world.request(5.0) == 1_000
    world.set("/config/users/bob", request_percentage=10)
    assert world.request(0.1, user="bob") == 0


def test_time_of_other_requests_does_not_count(world):
    world.set(ALICE, request_percentage=10)
    waiting = world.meter()
    with waiting.working():
        pass
    world.cpu_ns += 100 * SECOND_NS
    world.thread = 2  # the thread of another request has what this one waits for
    assert waiting.delay_ms() == 0


def test_time_after_the_answer_counts_for_the_next_request(world):
    world.set(ALICE, request_percentage=10)
    meter = world.meter()
    with meter.working():
        assert meter.delay_ms() == 0
        world.cpu_ns += 2 * SECOND_NS
    assert meter.delay_ms() == 0
    assert world.request(0.0001) == 1_000


def test_time_before_an_answer_by_another_thread_counts(world):
    world.set(ALICE, request_percentage=10)
    meter = world.meter()
    with meter.working():
        world.cpu_ns += 2 * SECOND_NS
    world.thread = 2
    assert meter.delay_ms() == 1_000


def test_the_time_of_a_request_without_an_answer_does_not_count(world):
    world.set(ALICE, request_percentage=10)
    assert world.request(5.0, is_timed=False) == 0
    assert world.request(0.1) == 0


def test_the_longer_of_two_delays_is_that_of_the_request(world):
    world.set(ALICE, request_percentage=10, producer_byte_rate=100)
    meter = world.meter(Quota.produce, frame_bytes=3_000)
    with meter.working():
        world.cpu_ns += 5 * SECOND_NS
        assert meter.delay_ms() == 20_000


def test_metrics_show_a_thousand_entities_at_most(world):
    world.set("/config/clients/<default>", producer_byte_rate=100, consumer_byte_rate=100)
    for number in range(ENTITIES_SHOWN_MAX):
        RequestMeter(world.quotas, "u", f"c-{number}", Quota.produce, 10).delay_ms()
        RequestMeter(world.quotas, "u", f"c-{number}", Quota.fetch, 0).delay_of_read_ms(10)
    assert sum(map(len, world.quotas.used().values())) == ENTITIES_SHOWN_MAX
