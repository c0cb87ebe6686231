"""Consumer groups through every client: members that join, leave, die and stall, and their offsets."""

import time

import pytest

from tests.interop.driver import RefusedError
from tests.interop.refusals import refused
from tests.waiting import until

pytestmark = [pytest.mark.clients, pytest.mark.integration]

SESSION_MS = 3_000


def parts(topic, count):
    return [[topic, number] for number in range(count)]


def assignment(driver, member):
    return driver.state(member=member)["assignment"]


def wait_assigned(members, wanted):
    """Until ``members``, pairs of driver and name, own ``wanted`` together, each partition once."""
    owned = []

    def is_so():
        owned[:] = [assignment(driver, member) for driver, member in members]
        return all(owned) and sorted(part for one in owned for part in one) == sorted(wanted)

    until(is_so, lambda: f"wanted {wanted}, have {owned}; {states(members)}")
    return owned


def states(members):
    return [{**driver.state(member=member), "records": "..."} for driver, member in members]


def wait_values(driver, member, wanted):
    def is_so():
        return set(wanted) <= {record[3] for record in driver.state(member=member)["records"]}

    until(is_so, lambda: f"wanted {wanted}: {driver.state(member=member)}")


def fill(reference, topic, partitions, each=5, first=0):
    records = [
        {"partition": part, "value": f"{part}:{number}"}
        for part in range(partitions)
        for number in range(first, first + each)
    ]
    reference.produce(topic=topic, records=records)
    return [record["value"] for record in records]


@pytest.fixture
def members(driver):
    """Joins members of a driver that leave at the end."""
    joined = []

    def join(member, **options):
        other = options.pop("driver", driver)
        options.setdefault("session_ms", SESSION_MS)
        other.join(member=member, **options)
        joined.append((other, member))
        return other, member

    join.joined = joined
    yield join
    for one, member in joined:
        if one.is_alive:
            one.leave(member=member)


def test_a_group_reads_commits_and_resumes(driver, reference, make_topic, group, members):
    topic = make_topic(2)
    sent = fill(reference, topic, 2)
    members("m", group=group, topics=[topic])
    wait_values(driver, "m", sent)
    driver.commit(member="m", offsets=[[topic, 0, 5, "a note"], [topic, 1, 3, ""]])
    committed = driver.committed(member="m", partitions=parts(topic, 2))
    assert [row[:3] for row in committed] == [[topic, 0, 5], [topic, 1, 3]]
    assert committed[0][3] in ("a note", "")  # kafka-go's readers and some others keep no notes
    driver.leave(member="m")
    members.joined.clear()
    assert reference.group_offsets(group=group) == [[topic, 0, 5], [topic, 1, 3]]
    later = fill(reference, topic, 2, each=1, first=5)
    members("n", group=group, topics=[topic])
    wait_values(driver, "n", ["1:3", "1:4", *later])
    assert len(driver.state(member="n")["records"]) == 4


def test_three_members_of_whom_one_leaves(driver, make_topic, group, members):
    topic = make_topic(6)
    three = [members(name, group=group, topics=[topic]) for name in "abc"]
    owned = wait_assigned(three, parts(topic, 6))
    assert [len(one) for one in owned] == [2, 2, 2]
    driver.leave(member="b")
    members.joined.remove((driver, "b"))
    owned = wait_assigned([three[0], three[2]], parts(topic, 6))
    assert [len(one) for one in owned] == [3, 3]


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_an_assignor(driver, reference, make_topic, group, members, assignor):
    topic = make_topic(4)
    members("a", group=group, topics=[topic], assignor=assignor)
    wait_assigned([(driver, "a")], parts(topic, 4))
    members("b", group=group, topics=[topic], assignor=assignor)
    owned = wait_assigned([(driver, "a"), (driver, "b")], parts(topic, 4))
    assert [len(one) for one in owned] == [2, 2]
    sent = fill(reference, topic, 4)
    until(
        lambda: set(sent) <= {record[3] for name in "ab" for record in driver.state(member=name)["records"]},
        lambda: str(states([(driver, "a"), (driver, "b")])),
    )


def test_a_member_beside_one_of_librdkafka(client, driver, reference, make_topic, group, members):
    """Members of different clients divide the partitions of one group."""
    topic = make_topic(4)
    assignor = "roundrobin" if client == "kafkajs" else "range"
    if client == "kafkajs":
        pytest.skip("kafkajs names its assignor differently from all other clients")
    both = [members("a", group=group, topics=[topic], assignor=assignor)]
    both.append(members("reference", driver=reference, group=group, topics=[topic], assignor=assignor))
    owned = wait_assigned(both, parts(topic, 4))
    assert [len(one) for one in owned] == [2, 2]


def test_a_static_member_returns_without_a_rebalance(
    driver, start_driver, client, make_topic, group, members
):
    topic = make_topic(4)
    members("stays", group=group, topics=[topic], instance="one")
    other = start_driver(client)
    other.join(member="returns", group=group, topics=[topic], instance="two", session_ms=20_000)
    before = wait_assigned([(driver, "stays"), (other, "returns")], parts(topic, 4))
    rebalances = driver.state(member="stays")["rebalances"]
    other.kill()
    members(
        "back", driver=start_driver(client), group=group, topics=[topic], instance="two", session_ms=20_000
    )
    after = wait_assigned(members.joined, parts(topic, 4))
    assert after == before
    assert driver.state(member="stays")["rebalances"] == rebalances


def test_a_twin_fences_a_static_member(driver, start_driver, client, make_topic, group, members):
    topic = make_topic(2)
    driver.join(member="first", group=group, topics=[topic], instance="one", session_ms=SESSION_MS)
    wait_assigned([(driver, "first")], parts(topic, 2))
    twin = start_driver(client)
    members("twin", driver=twin, group=group, topics=[topic], instance="one")
    wait_assigned([(twin, "twin")], parts(topic, 2))
    with refused(client, "FENCED_INSTANCE_ID"):
        until(lambda: driver.commit(member="first", offsets=[[topic, 0, 1, ""]]), "the fenced member commits")
    driver.kill()  # what a fenced member does then is the client's affair
    assert assignment(twin, "twin") == parts(topic, 2)


def test_a_member_that_dies(driver, start_driver, client, make_topic, group, members):
    topic = make_topic(4)
    members("lives", group=group, topics=[topic])
    dying = start_driver(client)
    dying.join(member="dies", group=group, topics=[topic], session_ms=SESSION_MS)
    wait_assigned([(driver, "lives"), (dying, "dies")], parts(topic, 4))
    dying.kill()
    wait_assigned([(driver, "lives")], parts(topic, 4))


def test_the_late_commit_of_an_evicted_member(
    driver, reference, start_driver, client, make_topic, group, members
):
    """It stood still for longer than its session; what it then commits must not count."""
    topic = make_topic(2)
    fill(reference, topic, 2, each=10)  # some clients reset an offset behind the end, by a commit
    stalls = start_driver(client)
    stalls.join(member="stalls", group=group, topics=[topic], session_ms=SESSION_MS)
    wait_assigned([(stalls, "stalls")], parts(topic, 2))
    stalls.commit(member="stalls", offsets=[[topic, 0, 1, ""]])
    stalls.pause()
    members("next", group=group, topics=[topic])
    wait_assigned([(driver, "next")], parts(topic, 2))
    stalls.send("commit", member="stalls", offsets=[[topic, 0, 7, ""]])
    stalls.resume()
    with refused(client, "UNKNOWN_MEMBER_ID"):
        stalls.answer()
    assert reference.group_offsets(group=group) == [[topic, 0, 1]]
    stalls.kill()


def test_a_subscription_by_pattern(driver, reference, make_topic, group, members):
    first, prefix = make_topic(1), f"{group}-pattern-"
    reference.create_topic(topic=f"{prefix}1", partitions=1)
    members("m", group=group, pattern=f"{prefix}.*")
    wait_assigned([(driver, "m")], parts(f"{prefix}1", 1))
    reference.create_topic(topic=f"{prefix}2", partitions=1)
    wait_assigned([(driver, "m")], [[f"{prefix}1", 0], [f"{prefix}2", 0]])
    assert [first, 0] not in assignment(driver, "m")


def test_a_subscription_to_a_topic_that_comes_later(driver, reference, group, members):
    topic = f"{group}-later"
    members("m", group=group, topics=[topic])
    time.sleep(1)
    reference.create_topic(topic=topic, partitions=2)
    sent = fill(reference, topic, 2)
    wait_values(driver, "m", sent)


def test_a_note_that_is_too_long(driver, client, make_topic, group, members):
    topic = make_topic(1)
    members("m", group=group, topics=[topic])
    wait_assigned([(driver, "m")], parts(topic, 1))
    with refused(client, "OFFSET_METADATA_TOO_LARGE"):
        driver.commit(member="m", offsets=[[topic, 0, 1, "x" * 5000]])


def test_a_group_whose_coordinator_moves(driver, reference, target, make_topic, group, members):
    """The broker of its coordinator is killed: the group goes on in its generation and commits again."""
    topic = make_topic(2)
    fill(reference, topic, 2)
    members("m", group=group, topics=[topic], session_ms=10_000)
    wait_assigned([(driver, "m")], parts(topic, 2))
    driver.commit(member="m", offsets=[[topic, 0, 1, ""]])
    coordinator = target.coordinator(group)
    target.kill_broker(coordinator)
    try:
        until(lambda: commits(driver, "m", topic, 2), lambda: str(driver.state(member="m")))
        assert assignment(driver, "m") == parts(topic, 2)
    finally:
        target.revive_broker(coordinator)
        target.wait_in_sync(topic)
        target.wait_in_sync("__consumer_offsets")
    assert reference.group_offsets(group=group) == [[topic, 0, 2]]


def commits(driver, member, topic, offset):
    try:
        driver.commit(member=member, offsets=[[topic, 0, offset, ""]])
    except RefusedError:
        return False
    return True
