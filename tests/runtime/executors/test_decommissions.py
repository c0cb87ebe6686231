"""Brokers of executors that are decommissioned are told to leave, once, with what Spark's books say."""

import threading
from types import SimpleNamespace

import pytest

from sparklog_runtime.executors.decommissions import Decommissions, SlotJob
from tests.waiting import until


def option(value):
    """A Scala option, as py4j shows it."""
    return SimpleNamespace(isDefined=lambda: value is not None, get=lambda: value)


def seq(*values):
    return SimpleNamespace(isEmpty=lambda: not values, apply=values.__getitem__)


class Spark:
    """What is asked of a SparkContext: one job of each slot runs, on the executor of that number."""

    def __init__(self):
        self.decommissioned = set()
        self.executors = {0: "4", 1: "7"}
        self.fails = 0
        self.asked = threading.Semaphore(0)
        self._jsc = SimpleNamespace(sc=lambda: self)

    def taskScheduler(self):  # noqa: N802 (Spark's name)
        if self.fails:
            self.fails -= 1
            raise RuntimeError("Spark stops")
        return SimpleNamespace(getExecutorDecommissionState=self._state)

    def _state(self, executor):
        self.asked.release()
        return option("state" if executor in self.decommissioned else None)

    def statusTracker(self):  # noqa: N802 (Spark's name)
        return SimpleNamespace(getJobIdsForTag=self._jobs, getJobInfo=self._job)

    def _jobs(self, tag):
        slot = int(tag.rpartition("-")[2])
        return [10 * slot, 10 * slot + 1]

    def _job(self, number):
        slot, is_running = divmod(number, 10)
        return option(
            SimpleNamespace(status=lambda: "RUNNING" if is_running else "FAILED", stageIds=lambda: [slot])
        )

    def statusStore(self):  # noqa: N802 (Spark's name)
        return SimpleNamespace(taskList=self._tasks)

    def _tasks(self, stage, attempt, at_most):
        executor = self.executors.get(stage)
        return seq() if executor is None else seq(SimpleNamespace(executorId=lambda: executor))


@pytest.fixture
def spark():
    return Spark()


@pytest.fixture
def followed(spark, monkeypatch):
    """The jobs that were told to leave; the thread looks without a pause."""
    monkeypatch.setattr("sparklog_runtime.executors.decommissions.LOOK_INTERVAL_S", 0.001)
    jobs, left, told = [SlotJob(0, 1), SlotJob(1, 1)], [], threading.Semaphore(0)

    def leave(job):
        left.append(job)
        told.release()

    lines: list[str] = []
    looks = threading.Semaphore(0)

    def running():
        looks.release()
        return list(jobs)

    decommissions = Decommissions(spark, running, leave, lines.append)
    yield SimpleNamespace(jobs=jobs, left=left, told=told, lines=lines, looks=looks)
    decommissions.close()


def look(spark, times=4):
    """Wait until executors were asked about so often from now on."""
    while spark.asked.acquire(blocking=False):
        pass
    for _ in range(times):
        assert spark.asked.acquire(timeout=10)


def look_on(followed, times=3):
    """Wait for so many looks from now on; executors that are decommissioned already are not asked about."""
    while followed.looks.acquire(blocking=False):
        pass
    for _ in range(times):
        assert followed.looks.acquire(timeout=10)


def test_the_broker_of_a_decommissioned_executor_leaves_once(spark, followed):
    look(spark)
    assert followed.left == []
    spark.decommissioned.add("7")
    assert followed.told.acquire(timeout=10)
    look(spark)
    assert followed.left == [SlotJob(1, 1)]


def test_the_next_job_of_a_slot_is_looked_up_anew(spark, followed):
    spark.decommissioned.add("7")
    assert followed.told.acquire(timeout=10)
    spark.executors[1] = "9"
    followed.jobs[1] = SlotJob(1, 2)
    look(spark)
    assert followed.left == [SlotJob(1, 1)]
    spark.decommissioned.add("9")
    assert followed.told.acquire(timeout=10)
    assert followed.left == [SlotJob(1, 1), SlotJob(1, 2)]


def test_a_task_that_sparks_books_do_not_have_yet_is_looked_for_again(spark, followed):
    del spark.executors[1]
    spark.decommissioned.add("7")
    look(spark)
    spark.executors[1] = "7"
    assert followed.told.acquire(timeout=10)


def test_a_look_that_fails_is_repeated(spark, followed):
    spark.fails = 3
    spark.decommissioned.add("4")
    assert followed.told.acquire(timeout=10)
    assert followed.left == [SlotJob(0, 1)]


def test_of_several_the_next_one_leaves_when_the_last_one_runs_elsewhere(spark, followed):
    spark.decommissioned |= {"4", "7"}
    assert followed.told.acquire(timeout=10)
    look_on(followed)
    assert followed.left == [SlotJob(0, 1)]
    del followed.jobs[0]  # it has stopped
    look_on(followed)
    assert followed.left == [SlotJob(0, 1)]
    spark.executors[0] = "8"
    followed.jobs.append(SlotJob(0, 2))
    assert followed.told.acquire(timeout=10)
    assert followed.left == [SlotJob(0, 1), SlotJob(1, 1)]


def test_where_none_runs_elsewhere_in_time_the_next_one_leaves_all_the_same(spark, followed, monkeypatch):
    monkeypatch.setattr("sparklog_runtime.executors.decommissions.TURN_S", 0.05)
    spark.decommissioned |= {"4", "7"}
    for _ in range(2):
        assert followed.told.acquire(timeout=10)
    assert followed.left == [SlotJob(0, 1), SlotJob(1, 1)]


def test_all_executors_at_once_are_said_once_and_one_alone_is_not(spark, followed):
    spark.decommissioned.add("7")
    assert followed.told.acquire(timeout=10)
    look_on(followed)
    assert followed.lines == []
    spark.decommissioned.add("4")
    until(lambda: followed.lines)
    look_on(followed)
    assert followed.lines == [
        "2 of 2 executors are decommissioned: their brokers stop one after the other; none of these "
        "executors stays, so partitions have no leader until Spark gives others"
    ]
