"""Brokers that wait for executors have a line that says how many there are and what the master lacks."""

import pytest

from sparklog_runtime.executors.allocation import Capacity, ExecutorSize, allocation_in_words, wait_in_words
from sparklog_runtime.executors.master_page import FreeWorker

SIZE = ExecutorSize(cores=3, memory_mib=1_024)
COUNTED = "Spark has given 1 of 3 executors for 10 s"


@pytest.mark.parametrize(
    ("capacity", "reason"),
    [
        (Capacity(1), ""),
        (
            Capacity(1, None, "the page at http://h:8081 does not answer as one of Spark: timed out"),
            "; what the master has free is not known: the page at http://h:8081 does not answer as one of "
            "Spark: timed out",
        ),
        (Capacity(1, []), "; the master has no workers: add some"),
        (
            Capacity(1, [FreeWorker(0, 4_000)]),
            "; the master has 0 cores free and an executor takes 3: add workers, or end other applications",
        ),
        (
            Capacity(1, [FreeWorker(2, 4_000)]),
            "; the master has 2 cores free and an executor takes 3: "
            "add workers, or lower spark.executor.cores",
        ),
        (
            Capacity(1, [FreeWorker(2, 4_000), FreeWorker(2, 4_000)]),
            "; the master has 4 cores free, 2 at most on one worker, and an executor takes 3: "
            "add workers, or lower spark.executor.cores",
        ),
        (
            Capacity(1, [FreeWorker(2, 4_000), FreeWorker(3, 1_000)]),
            "; no worker has more than 1000 MiB free and an executor takes 1024 MiB: "
            "add workers, or lower spark.executor.memory",
        ),
        (
            Capacity(1, [FreeWorker(3, 4_000)]),
            "; the master has 3 cores free, which is enough: executors are starting",
        ),
    ],
)
def test_the_reason_names_what_is_free_and_what_an_executor_takes(capacity, reason):
    assert allocation_in_words(3, 10.2, SIZE, capacity) == COUNTED + reason
    relaunched = wait_in_words("broker 3", 40.4, 3, SIZE, capacity)
    assert relaunched == "broker 3: no executor for 40 s" + reason


def test_a_broker_that_has_its_executor_and_no_process_is_not_said_to_wait_for_one():
    line = wait_in_words("broker 3", 40.4, 3, SIZE, Capacity(3, [FreeWorker(0, 0)]))
    assert line == "broker 3: no process for 40 s, although Spark has given 3 executors"


def test_a_worker_counts_the_heap_of_an_executor_and_not_what_spark_adds_to_it():
    assert ExecutorSize.of({"spark.executor.cores": "2"}) == ExecutorSize(2, 1_024)
    assert ExecutorSize.of({"spark.executor.memory": "10g"}) == ExecutorSize(1, 10_240)
    with_overhead = {"spark.executor.memory": "1g", "spark.executor.memoryOverhead": "2g"}
    assert ExecutorSize.of(with_overhead) == ExecutorSize(1, 1_024)
