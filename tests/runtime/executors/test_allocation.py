"""A start that waits for executors says how many there are and what the master lacks."""

import pytest

from sparklog_runtime.executors.allocation import ExecutorSize, FreeWorker, allocation_in_words

SIZE = ExecutorSize(cores=3, memory_mib=1_408)
COUNTED = "Spark has given 1 of 3 executors for 10 s"


@pytest.mark.parametrize(
    ("workers", "reason"),
    [
        (None, ""),
        ([], "; the master has no workers: add some"),
        (
            [FreeWorker(2, 4_000)],
            "; the master has 2 cores free and an executor takes 3: "
            "add workers, or lower spark.executor.cores",
        ),
        (
            [FreeWorker(2, 4_000), FreeWorker(2, 4_000)],
            "; the master has 4 cores free, 2 at most on one worker, and an executor takes 3: "
            "add workers, or lower spark.executor.cores",
        ),
        (
            [FreeWorker(2, 4_000), FreeWorker(3, 1_000)],
            "; no worker has more than 1000 MiB free and an executor takes 1408 MiB: "
            "add workers, or lower spark.executor.memory",
        ),
        ([FreeWorker(3, 4_000)], "; the master has 3 cores free, which is enough: executors are starting"),
    ],
)
def test_the_reason_names_what_is_free_and_what_an_executor_takes(workers, reason):
    assert allocation_in_words(1, 3, 10.2, SIZE, workers) == COUNTED + reason


def test_an_executor_takes_its_heap_and_what_spark_adds_to_it():
    assert ExecutorSize.of({"spark.executor.cores": "2"}) == ExecutorSize(2, 1_408)
    assert ExecutorSize.of({"spark.executor.memory": "10g"}) == ExecutorSize(1, 11_264)
    with_overhead = {"spark.executor.memory": "1g", "spark.executor.memoryOverhead": "2g"}
    assert ExecutorSize.of(with_overhead) == ExecutorSize(1, 3_072)
