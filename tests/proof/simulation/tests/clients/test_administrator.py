"""An administrator's errands: each ends, and until then nothing is at rest."""

import itertools

import pytest

from simulation.clients.administrator import PATIENCE_MS, is_accepted
from simulation.cluster import Cluster
from simulation.machines.network import Network
from simulation.plans.faults import Fault
from simulation.plans.operations import Operation
from simulation.plans.plan import CONTROLLERS, FAULTS_BEGIN_MS, SIDE_TOPIC, draw_plan
from simulation.run import simulate
from simulation.schedule import US_PER_MS
from simulation.strikes.strikes import Strikes
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.data.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

PLAN = draw_plan(1, without_faults=True)
HEARS_OF_NOTHING = 2.0


@pytest.fixture
def cluster():
    cluster = Cluster(PLAN)
    yield cluster
    cluster.end()


def run(cluster, ms):
    cluster.schedule.run_until(cluster.schedule.now_us + ms * US_PER_MS)


def test_an_errand_ends_when_somebody_has_decided(cluster):
    cluster.start()
    run(cluster, 500)
    cluster.administrator._create()
    assert cluster.administrator.errands == 1
    run(cluster, 500)
    assert cluster.administrator.errands == 0
    assert SIDE_TOPIC in cluster.witness.seen_topics
    assert cluster.administrator.accepted == 1


def test_what_was_refused_does_not_count_as_accepted(cluster):
    cluster.start()
    run(cluster, 500)
    cluster.administrator._create()
    run(cluster, 500)
    cluster.administrator._create()
    run(cluster, 500)
    assert (cluster.administrator.errands, cluster.administrator.accepted) == (0, 1)


@pytest.mark.parametrize("ask", ["abort what hangs", "delete records"])
def test_a_leader_on_another_machine_is_asked_at_its_new_address(cluster, monkeypatch, ask):
    """Seed 3189: nobody listens at the old address, and no hanging transaction there was aborted."""
    cluster.start()
    run(cluster, 500)
    administrator = cluster.administrator
    administrator._create()
    run(cluster, 500)
    truth = next(one for tp, one in cluster.witness.truths.items() if tp.topic == SIDE_TOPIC)
    host = f"broker-{truth.state.leader}"
    fault = Fault(0, cluster.schedule.now_ms, "replace broker", host, "", 200, HEARS_OF_NOTHING)
    strikes = Strikes(cluster)
    strikes._zombies.by_kind[fault.kind](fault)
    asked = []
    monkeypatch.setattr(
        Network, "call", lambda network, caller, origin, address, *_, **__: asked.append(address)
    )
    if ask == "delete records":
        administrator._delete_records(truth, 0.5)
    else:
        administrator.abort_hanging(truth, 7, 0, 0)
    monkeypatch.undo()
    strikes.end()
    assert asked == [f"{host}-1"]


@pytest.mark.parametrize(
    ("of_partition", "is_done"), [(ErrorCode.none, True), (ErrorCode.unknown_topic_or_partition, False)]
)
def test_an_answer_is_accepted_if_no_part_of_it_has_an_error(of_partition, is_done):
    partition = DeleteRecordsPartitionResult(partition_index=0, error_code=of_partition)
    assert (
        is_accepted(
            DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="t", partitions=[partition])])
        )
        is is_done
    )


@pytest.mark.parametrize("dead", CONTROLLERS)
def test_a_topic_is_deleted_and_created_again_by_whichever_controller_is_in_charge(cluster, dead):
    cluster.start()
    cluster.kill(dead, is_reported=False)
    run(cluster, 500)
    cluster.administrator._create()
    run(cluster, 500)
    first = cluster.witness.seen_topics[SIDE_TOPIC].node.id
    cluster.administrator._delete(again=True)
    for _ in itertools.takewhile(lambda _: cluster.administrator.errands, range(1_000)):
        run(cluster, 10)
    assert cluster.administrator.errands == 0
    assert cluster.witness.seen_topics[SIDE_TOPIC].node.id != first


@pytest.mark.parametrize("begin", ["_create", "_create_when_it_is_gone"])
def test_an_errand_that_nobody_answers_ends_when_its_time_is_up(cluster, begin):
    getattr(cluster.administrator, begin)()
    run(cluster, PATIENCE_MS // 2)
    assert cluster.administrator.errands == 1
    run(cluster, PATIENCE_MS)
    assert cluster.administrator.errands == 0


def test_nothing_is_at_rest_while_an_administrator_has_not_done(monkeypatch):
    def at_rest_ms():
        plan = PLAN.with_steps([Operation(0, FAULTS_BEGIN_MS, "create topic", 0.5)])
        lines = simulate(plan, is_told=True).lines
        return float(next(line for line in lines if "AT REST" in line).split()[0])

    usual_ms = at_rest_ms()
    begin = Cluster.schedule_operations

    def begin_a_long_one(cluster):
        begin(cluster)
        cluster.administrator.errands += 1
        cluster.schedule.at(int(usual_ms + 500) * US_PER_MS, None, lambda: end(cluster.administrator))

    def end(administrator):
        administrator.errands -= 1

    monkeypatch.setattr(Cluster, "schedule_operations", begin_a_long_one)
    assert at_rest_ms() >= usual_ms + 500
