"""What Spark says about a failed job, cut down to what matters."""

from sparklog_runtime.session import cause_in

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
