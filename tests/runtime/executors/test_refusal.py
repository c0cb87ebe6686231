"""What Spark says about a failed job, cut down to what matters."""

import pytest

from sparklog.model.errors import ConfigError, UnsafeStartError
from sparklog_runtime.executors.refusal import cause_in, environment_refusal, job_failure

CRASHED = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2898)
Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)
\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1136)
Caused by: java.io.EOFException
"""

NO_MODULE = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Lost task 0.0 in stage 0.0:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 4177, in invoke_udf
ModuleNotFoundError: No module named 'sparklog_runtime'

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:567)
"""


def test_the_cause_of_a_crash_is_the_line_that_names_it():
    assert cause_in(CRASHED) == (
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
    )


def test_the_cause_of_a_python_error_is_pythons_own_line():
    assert cause_in(NO_MODULE) == "ModuleNotFoundError: No module named 'sparklog_runtime'"


def test_what_has_no_known_shape_is_told_by_its_first_line():
    assert cause_in("  strange\nthings") == "strange"
    assert cause_in("") == "no reason given"


FAILED = """org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 1 times,
most recent failure: Lost task 0.0 in stage 1.0 (TID 1) (worker-2 executor 0): {cause}
"""


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: "
            "3.11, "
            "PySpark cannot run with different minor versions.",
            "host worker-2 has Python 3.12, the driver has 3.11: name a Python 3.11",
        ),
        (
            'java.io.IOException: Cannot run program "/opt/py/bin/python": error=2, No such file',
            "host worker-2 has no Python /opt/py/bin/python: install it there",
        ),
        (
            "ModuleNotFoundError: No module named 'sparklog_runtime'",
            "host worker-2 has no sparklog in the executors' Python: install",
        ),
    ],
)
def test_what_spark_says_of_a_host_that_cannot_run_brokers_gets_a_remedy(cause, words):
    refused = job_failure(FAILED.format(cause=cause))
    assert isinstance(refused, ConfigError)
    assert str(refused).startswith(words)
    assert "spark.pyspark.python" in str(refused)


def test_a_start_that_an_executor_refuses_for_safety_is_told_apart():
    cause = "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    cause += "sparklog.model.errors.UnsafeStartError: /k.pem: the certificate of CN=b has expired"
    refused = job_failure(FAILED.format(cause=cause))
    assert isinstance(refused, UnsafeStartError)
    assert str(refused) == "/k.pem: the certificate of CN=b has expired (host worker-2)"


def test_another_failure_of_a_job_names_its_host_and_may_be_tried_again():
    failed = job_failure(FAILED.format(cause="") + "Caused by: java.io.EOFException: the end")
    assert not isinstance(failed, ConfigError)
    assert str(failed) == "java.io.EOFException: the end (host worker-2)"


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        ({"python": "3.10"}, "has Python 3.10 (/opt/python), the driver has 3.11"),
        ({"sparklog": ""}, "has no sparklog in /opt/python"),
        ({"sparklog": "0.0.9"}, "has sparklog 0.0.9 in /opt/python, the driver has 0.1.0"),
        ({"pyspark": "4.2.0"}, "has pyspark 4.2.0 in /opt/python, the driver has 4.3.0"),
    ],
)
def test_an_environment_that_differs_is_refused_with_host_value_and_remedy(difference, words):
    wanted = {"python": "3.11", "pyspark": "4.3.0", "sparklog": "0.1.0"}
    found = {**wanted, "host": "worker-2", "executable": "/opt/python", **difference}
    assert str(environment_refusal(found, wanted)).startswith(f"host worker-2 {words}")


def test_a_setting_that_cannot_work_on_a_host_is_worth_no_second_try():
    cause = "sparklog.model.errors.ConfigError: ssl.keystore.location: away.pem cannot be read here"
    text = NO_MODULE.replace("ModuleNotFoundError: No module named 'sparklog_runtime'", cause)
    failure = job_failure(f"Lost task 0.0 in stage 0.0 (TID 0) (worker-3 executor 1): {text}")
    assert isinstance(failure, ConfigError)
    assert str(failure) == "ssl.keystore.location: away.pem cannot be read here (host worker-3)"
