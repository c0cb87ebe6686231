"""The simulated network: requests that come twice, answers that never come, bits that flip."""

import pytest

from simulation.machines.network import Network
from simulation.schedule import US_PER_MS, Process, Schedule
from sparklog.records.envelope import ATTRIBUTES_POSITION, build_envelope
from sparklog.wire.codec import decode_request, encode_response
from sparklog.wire.messages.data.produce import ProducePartition, ProduceRequest, ProduceTopic
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataResponse


class Asked:
    """A caller and a server that count."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.network = Network(self.schedule, 1, (1.0, 2.0))
        self.served, self.answers, self.failures = 0, 0, []
        self.network.listen("server", Process(self.schedule, "server"), self.serve)

    def serve(self, exchange) -> None:
        self.served += 1
        header = decode_request(exchange.frame).header
        exchange.reply(encode_response(MetadataResponse(), header.api_version, header.correlation_id))

    def answered(self, _response) -> None:
        self.answers += 1

    def ask(self) -> None:
        self.network.call(
            Process(self.schedule, "caller"), "caller", "server", MetadataRequest(), timeout_ms=500,
            on_response=self.answered, on_failure=self.failures.append,
        )  # fmt: skip
        self.schedule.run_until(self.schedule.now_us + 3_000 * US_PER_MS)


@pytest.fixture
def asked():
    return Asked()


def test_a_request_that_is_repeated_takes_place_twice_and_is_answered_once(asked) -> None:
    asked.network.weather("caller", "server").repeat = 1.0
    asked.ask()
    assert (asked.served, asked.answers, asked.failures) == (2, 1, [])


def test_a_lost_answer_leaves_the_request_done_and_its_sender_waiting_for_the_time_out(asked) -> None:
    asked.network.weather("server", "caller").answer_loss = 1.0
    asked.ask()
    assert (asked.served, asked.answers) == (1, 0)
    assert isinstance(asked.failures[0], TimeoutError)


def test_behind_a_lost_answer_no_other_comes_that_would_be_taken_for_it(asked) -> None:
    caller, weather = Process(asked.schedule, "caller"), asked.network.weather("server", "caller")

    def serve(exchange) -> None:
        weather.answer_loss = 0.0 if asked.served else 1.0
        asked.serve(exchange)

    asked.network.listen("server", Process(asked.schedule, "server"), serve)
    for _ in range(2):
        asked.network.call(
            caller, "caller", "server", MetadataRequest(), timeout_ms=500,
            on_response=asked.answered, on_failure=asked.failures.append,
        )  # fmt: skip
    asked.schedule.run_until(3_000 * US_PER_MS)
    assert (asked.served, asked.answers, len(asked.failures)) == (2, 0, 2)


def test_a_slow_server_answers_late_and_is_asked_in_time(asked) -> None:
    asked.network.weather("server", "caller").answer_extra_ms = 400.0
    asked.network.weather("server", "caller").random.random = lambda: 1.0
    asked.network.call(
        Process(asked.schedule, "caller"), "caller", "server", MetadataRequest(), timeout_ms=500,
        on_response=asked.answered, on_failure=asked.failures.append,
    )  # fmt: skip
    asked.schedule.run_until(399 * US_PER_MS)
    assert (asked.served, asked.answers) == (1, 0)
    asked.schedule.run_until(410 * US_PER_MS)
    assert (asked.answers, asked.failures) == (1, [])


def test_requests_vanish_in_a_connection_that_hangs_until_one_has_waited_for_too_long(asked) -> None:
    caller = Process(asked.schedule, "caller")

    def call(timeout_ms: int) -> None:
        asked.network.call(
            caller, "caller", "server", MetadataRequest(), timeout_ms=timeout_ms,
            on_response=asked.answered, on_failure=asked.failures.append,
        )  # fmt: skip

    weather = asked.network.weather("caller", "server")
    weather.is_cut = weather.is_silent = 1
    call(500)
    asked.schedule.run_until(100 * US_PER_MS)
    weather.is_cut = weather.is_silent = 0
    call(2_000)
    asked.schedule.run_until(490 * US_PER_MS)
    assert (asked.served, asked.failures) == (0, [])
    asked.schedule.run_until(600 * US_PER_MS)
    assert len(asked.failures) == 2
    call(500)
    asked.schedule.run_until(1_000 * US_PER_MS)
    assert (asked.served, asked.answers) == (1, 1)


def test_a_host_refuses_once_its_process_is_dead_not_while_paused_or_out_of_reach(asked) -> None:
    process = asked.network.hosts["server"].process
    assert not asked.network.refuses("caller", "server")
    process.pause()
    assert not asked.network.refuses("caller", "server")
    process.is_alive = False
    assert asked.network.refuses("caller", "server")
    assert asked.network.refuses("caller", "where nobody ever listened")
    asked.network.weather("server", "caller").is_cut += 1
    assert not asked.network.refuses("caller", "server")


@pytest.mark.parametrize("is_bound", [True, False])
def test_messages_in_flight_to_a_process_do_not_reach_its_successor(is_bound) -> None:
    """The next one would reset a connection that it knows nothing of."""
    asked = Asked()
    first = asked.network.hosts["server"].process
    asked.network.call(
        Process(asked.schedule, "caller"), "caller", "server", MetadataRequest(), timeout_ms=500,
        on_response=asked.answered, on_failure=asked.failures.append, is_bound=is_bound,
    )  # fmt: skip
    first.is_alive = False
    asked.network.hosts["server"].process = Process(asked.schedule, "server")
    asked.schedule.run_until(3_000 * US_PER_MS)
    assert asked.served == (0 if is_bound else 1)
    assert len(asked.failures) == (1 if is_bound else 0)


def test_a_bound_connection_to_where_nobody_listened_yet_is_to_who_comes_first() -> None:
    asked = Asked()
    host = asked.network.hosts.pop("server")
    asked.network.call(
        Process(asked.schedule, "caller"), "caller", "server", MetadataRequest(), timeout_ms=500,
        on_response=asked.answered, on_failure=asked.failures.append, is_bound=True,
    )  # fmt: skip
    asked.network.hosts["server"] = host
    asked.schedule.run_until(3_000 * US_PER_MS)
    assert (asked.served, asked.answers) == (1, 1)


def test_frames_after_an_undelivered_one_are_not_delivered_to_a_later_listener() -> None:
    """Its answer would be taken for that of the request in front; seed 905551."""
    asked = Asked()
    caller, host = Process(asked.schedule, "caller"), asked.network.hosts.pop("server")
    asked.network.weather("server", "caller").extra_ms = 400.0

    def call() -> None:
        asked.network.call(
            caller, "caller", "server", MetadataRequest(), timeout_ms=1_000,
            on_response=asked.answered, on_failure=asked.failures.append, is_bound=True,
        )  # fmt: skip

    call()
    asked.schedule.run_until(10 * US_PER_MS)
    asked.network.hosts["server"] = host
    call()
    asked.schedule.run_until(900 * US_PER_MS)
    assert (asked.served, asked.answers, len(asked.failures)) == (0, 0, 2)
    call()
    asked.schedule.run_until(2_000 * US_PER_MS)
    assert (asked.served, asked.answers) == (1, 1)


def test_after_a_lost_frame_of_a_client_no_later_frame_arrives_first() -> None:
    """What follows over another connection would be answered as if it was the first; TCP has one."""
    asked = Asked()
    caller, weather = Process(asked.schedule, "caller"), asked.network.weather("caller", "server")

    def call() -> None:
        asked.network.call(
            caller, "caller", "server", MetadataRequest(), timeout_ms=500,
            on_response=asked.answered, on_failure=asked.failures.append, is_bound=True,
        )  # fmt: skip

    weather.is_cut = 1
    call()
    weather.is_cut = 0
    call()
    asked.schedule.run_until(10 * US_PER_MS)
    assert (asked.served, [str(one) for one in asked.failures]) == (0, ["server: reset"] * 2)
    call()
    asked.schedule.run_until(20 * US_PER_MS)
    assert (asked.served, asked.answers, asked.network.callers) == (1, 1, ["caller"])


BATCH = build_envelope(
    b"records" * 9, attributes=0, record_count=1, last_offset_delta=0, base_timestamp_ms=1, max_timestamp_ms=1
)


def produced(chance: float, times: int) -> list[bytes]:
    """The frames in which one batch arrives that is sent again and again, half of the times with acks=0."""
    schedule, frames = Schedule(), []
    network = Network(schedule, 1, (1.0, 2.0))
    network.listen(
        "server", Process(schedule, "server"), lambda exchange: frames.append(bytes(exchange.frame))
    )
    network.flip_bits("server", chance)
    for number in range(times):
        caller = Process(schedule, f"caller-{number}")
        data = ProducePartition(index=0, records=BATCH)
        request = ProduceRequest(topic_data=[ProduceTopic(name="quakes", partition_data=[data])])
        if number % 2:
            network.tell(caller, "caller", "server", request)
        else:
            network.call(
                caller, "caller", "server", request, timeout_ms=500,
                on_response=lambda response: None, on_failure=lambda error: None,
            )  # fmt: skip
        assert data.records is BATCH
    schedule.run_until(100 * US_PER_MS)
    return frames


def arrived(frame: bytes) -> bytes:
    """Its batch: what is around it can be read still."""
    body = decode_request(memoryview(frame)).body
    assert (body.acks, body.topic_data[0].name) == (-1, "quakes")
    return bytes(body.topic_data[0].partition_data[0].records)


def flipped(batch: bytes) -> list[int]:
    """The bits that differ from what was sent."""
    assert len(batch) == len(BATCH)
    differ = int.from_bytes(batch, "little") ^ int.from_bytes(BATCH, "little")
    return [bit for bit in range(8 * len(batch)) if differ >> bit & 1]


def test_one_bit_of_a_batch_flips_where_its_crc_covers_it_and_its_sender_has_it_whole() -> None:
    flips = [flipped(arrived(frame)) for frame in produced(1.0, 400)]
    assert len(flips) == 400
    assert {len(bits) for bits in flips} == {1}
    places = {bits[0] // 8 for bits in flips}
    assert places >= set(range(ATTRIBUTES_POSITION, ATTRIBUTES_POSITION + 10))
    assert (min(places), max(places)) == (ATTRIBUTES_POSITION, len(BATCH) - 1)


def test_what_is_around_the_batch_is_the_same_to_the_byte() -> None:
    whole, *_ = produced(0.0, 1)
    before, _, after = whole.partition(BATCH)
    damaged, *_ = produced(1.0, 1)
    assert damaged != whole
    assert damaged.startswith(before + BATCH[:ATTRIBUTES_POSITION])
    assert damaged.endswith(after)
    assert len(damaged) == len(whole)


def test_bits_flip_as_often_as_was_drawn_and_no_more_when_that_is_over() -> None:
    damaged = sum(arrived(frame) != BATCH for frame in produced(0.25, 200))
    assert 30 < damaged < 70
    network = Network(Schedule(), 1, (1.0, 2.0))
    for more in (0.05, 0.2, -0.05, -0.2):
        network.flip_bits("server", more)
    assert network._flips["server"] < 1e-9


def test_what_is_no_produce_request_is_spared(asked) -> None:
    asked.network.flip_bits("server", 1.0)
    asked.ask()
    assert (asked.served, asked.answers, asked.failures) == (1, 1, [])
