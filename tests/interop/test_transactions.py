"""Transactions through every client: commit, abort, fencing, time-out, offsets, and a coordinator that dies.

The clients of our own environment run in ``make test``, all others in ``make clients``.
"""

import itertools

import pytest

from tests.interop.clients import JAVA_RELEASES, KAFKA_PYTHON
from tests.interop.recording_proxy import (
    ADD_PARTITIONS,
    COMMIT_OFFSETS,
    END,
    PRODUCE,
    RecordingProxy,
    in_turns,
)
from tests.interop.refusals import refused
from tests.waiting import until

TRANSACTIONS = 8
IN_MAKE_TEST = ("confluent-kafka", "aiokafka", KAFKA_PYTHON.name)

pytestmark = pytest.mark.integration

_numbers = itertools.count(1)


@pytest.fixture
def transactional_id():
    return f"transactional-{next(_numbers)}"


@pytest.fixture
def producers(driver):
    """Initialises transactional producers of a driver, which are closed at the end."""
    made = []

    def init(producer, transactional_id, **options):
        options.setdefault("driver", driver).txn_init(
            producer=producer, transactional_id=transactional_id, **_without_driver(options)
        )
        made.append((options["driver"], producer))

    yield init
    for one, producer in made:
        if one.is_alive:
            one.txn_close(producer=producer)


def _without_driver(options):
    return {name: value for name, value in options.items() if name != "driver"}


def records(*values, partition=0):
    return [{"partition": partition, "value": value} for value in values]


def committed(reader, topic, count, partition=0, timeout_ms=10_000):
    """The values that a reader of committed records gets, at most ``count``."""
    found = reader.read(
        topic=topic,
        partition=partition,
        start="earliest",
        count=count,
        committed=True,
        timeout_ms=timeout_ms,
    )
    return [record["value"] for record in found]


def every_fourth_is_lost(api_key, number):
    """By turns a request and an answer; the connection goes with it."""
    if number % 4:
        return "arrives"
    return "answer is lost" if number % 8 else "request is lost"


def test_a_committed_transaction_is_seen_as_a_whole(
    driver, reference, make_topic, producers, transactional_id
):
    topic = make_topic(2)
    producers("p", transactional_id)
    driver.txn_begin(producer="p")
    driver.txn_send(producer="p", topic=topic, records=records("a", "b"))
    driver.txn_send(producer="p", topic=topic, records=records("c", partition=1))
    assert committed(reference, topic, 1, timeout_ms=500) == []
    driver.txn_end(producer="p", commit=True)
    assert committed(driver, topic, 2) == ["a", "b"]
    assert committed(reference, topic, 2) == ["a", "b"]
    assert committed(reference, topic, 1, partition=1) == ["c"]


def test_an_aborted_transaction_is_never_seen(driver, reference, topic, producers, transactional_id):
    producers("p", transactional_id)
    for number, commits in enumerate([True, False, True, False, True]):
        driver.txn_begin(producer="p")
        driver.txn_send(producer="p", topic=topic, records=records(f"{number}:a", f"{number}:b"))
        driver.txn_end(producer="p", commit=commits)
    seen = [f"{number}:{letter}" for number in (0, 2, 4) for letter in "ab"]
    assert committed(driver, topic, 6) == seen
    assert committed(reference, topic, 6) == seen
    reference.produce(topic=topic, records=records("end"))
    assert committed(driver, topic, 7) == [*seen, "end"]


def test_a_second_producer_fences_the_first(client, driver, reference, topic, producers, transactional_id):
    producers("first", transactional_id)
    driver.txn_begin(producer="first")
    driver.txn_send(producer="first", topic=topic, records=records("of a zombie"))
    producers("second", transactional_id)
    with refused(client, "PRODUCER_FENCED"):
        driver.txn_end(producer="first", commit=True)
    driver.txn_begin(producer="second")
    driver.txn_send(producer="second", topic=topic, records=records("of its successor"))
    driver.txn_end(producer="second", commit=True)
    reference.produce(topic=topic, records=records("end"))
    assert committed(reference, topic, 2) == ["of its successor", "end"]


def test_a_transaction_that_takes_too_long_is_aborted(
    client, driver, reference, topic, producers, transactional_id
):
    producers("slow", transactional_id, timeout_ms=1_500)
    driver.txn_begin(producer="slow")
    driver.txn_send(producer="slow", topic=topic, records=records("too late"))
    reference.produce(topic=topic, records=records("behind it"))
    assert committed(reference, topic, 1) == ["behind it"]
    with refused(client, "PRODUCER_FENCED"):
        driver.txn_end(producer="slow", commit=True)


def test_consume_transform_produce_counts_each_record_once(
    driver, reference, make_topic, group, producers, transactional_id
):
    source, sink = make_topic(1), make_topic(1)
    reference.produce(topic=source, records=records(*map(str, range(30))))
    driver.join(member="m", group=group, topics=[source], session_ms=10_000)
    try:
        given = until(
            lambda: found if len(found := driver.state(member="m")["records"]) == 30 else None,
            lambda: f"30 records: {driver.state(member='m')}",
        )
        producers("p", transactional_id)
        for first, commits in ((0, True), (10, False), (10, True), (20, True)):
            driver.txn_begin(producer="p")
            batch = [f"{value}!" for _, _, _, value in given[first : first + 10]]
            driver.txn_send(producer="p", topic=sink, records=records(*batch))
            driver.txn_offsets(producer="p", member="m", group=group, offsets=[[source, 0, first + 10]])
            driver.txn_end(producer="p", commit=commits)
            wanted = first + 10 if commits else first
            until(lambda wanted=wanted: reference.group_offsets(group=group) == [[source, 0, wanted]])
    finally:
        driver.leave(member="m")
    assert committed(reference, sink, 30) == [f"{number}!" for number in range(30)]


def test_a_transaction_survives_the_broker_of_its_coordinator(
    client, driver, reference, target, topic, producers, transactional_id
):
    if client.startswith("kafka-python"):
        pytest.skip(
            "kafka-python loses its request to a coordinator that refuses connections, and waits for ever"
        )
    producers("p", transactional_id)
    driver.txn_begin(producer="p")
    driver.txn_send(producer="p", topic=topic, records=records("before"))
    coordinator = target.transaction_coordinator(transactional_id)
    target.kill_broker(coordinator)
    try:
        driver.txn_send(producer="p", topic=topic, records=records("after"))
        driver.txn_end(producer="p", commit=True)
        assert committed(reference, topic, 2) == ["before", "after"]
    finally:
        target.revive_broker(coordinator)
        target.wait_in_sync(topic)
        target.wait_in_sync("__transaction_state")
    for commits in (False, True):
        driver.txn_begin(producer="p")
        driver.txn_send(producer="p", topic=topic, records=records(f"then {commits}"))
        driver.txn_end(producer="p", commit=commits)
    assert committed(reference, topic, 3) == ["before", "after", "then True"]


def test_no_request_of_a_producer_comes_over_two_connections_in_turns(
    client, start_driver, target, reference, make_topic, group, transactional_id
):
    """That makes a request late (docs/coordinators.md): if a client did so, what it sends would be lost."""
    topic, source = make_topic(3), make_topic(1)
    written = []
    with RecordingProxy(target.addresses(), every_fourth_is_lost) as proxy:
        driver = start_driver(client, proxy.bootstrap_servers)
        driver.txn_init(producer="p", transactional_id=transactional_id)
        driver.join(member="m", group=group, topics=[source], session_ms=10_000)
        until(lambda: driver.state(member="m")["assignment"])
        for number in range(TRANSACTIONS):
            values = [f"{number}:{partition}" for partition in range(3)]
            sent = [record for part, value in enumerate(values) for record in records(value, partition=part)]
            driver.txn_begin(producer="p")
            driver.txn_send(producer="p", topic=topic, records=sent)
            driver.txn_offsets(producer="p", member="m", group=group, offsets=[[source, 0, number]])
            driver.txn_end(producer="p", commit=True)
            written += values
        driver.kill()
    assert in_turns(proxy.requests) == []
    for api in (PRODUCE, ADD_PARTITIONS, COMMIT_OFFSETS, END):
        used = {one.connection for one in proxy.requests if one.kind[0] == api}
        assert len(used) > 1, f"requests of API {api} had all one connection"
    seen = [value for part in range(3) for value in committed(reference, topic, TRANSACTIONS, part, 3_000)]
    assert sorted(seen) == sorted(written)


@pytest.mark.clients
@pytest.mark.parametrize("client", [f"Java {release}" for release in JAVA_RELEASES])
def test_an_admin_client_fences_producers(client, driver, reference, topic, producers, transactional_id):
    """The open transaction of one is aborted, another one has none, and a third id was never there."""
    names = [f"{transactional_id}-{which}" for which in ("open", "idle", "new")]
    opened, idle, new = names
    for name in (opened, idle):
        producers(name, name)
        driver.txn_begin(producer=name)
        driver.txn_send(producer=name, topic=topic, records=records(f"of {name}"))
    driver.txn_end(producer=idle, commit=True)
    fenced = driver.fence_producers(transactional_ids=names)
    assert [epoch for _, epoch in (fenced[name] for name in names)] == [2, 1, 0]
    assert len({producer_id for producer_id, _ in fenced.values()}) == 3
    reference.produce(topic=topic, records=records("end"))
    assert committed(reference, topic, 2) == [f"of {idle}", "end"]
    with refused(client, "PRODUCER_FENCED"):
        driver.txn_end(producer=opened, commit=True)
    driver.txn_begin(producer=idle)
    with refused(client, "PRODUCER_FENCED"):
        driver.txn_send(producer=idle, topic=topic, records=records("of a zombie"))
    producers("successor", new)
    driver.txn_begin(producer="successor")
    driver.txn_send(producer="successor", topic=topic, records=records("of its successor"))
    driver.txn_end(producer="successor", commit=True)
    assert committed(reference, topic, 3) == [f"of {idle}", "end", "of its successor"]
