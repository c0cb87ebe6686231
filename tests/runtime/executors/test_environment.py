"""What is shipped to an executor needs nothing of ours there, and runs a task only on equal versions."""

import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import pyspark
import pytest
from pyspark import cloudpickle

from sparklog_runtime.executors import environment

UNPICKLES = """
import pickle, sys
class NothingOfOurs:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("sparklog", "sparklog_runtime", "pyspark_sparklog"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NothingOfOurs())
print(pickle.dumps(list(pickle.load(sys.stdin.buffer)(iter([0])))).hex())
"""


def doubled(rows):
    return [2 * row for row in rows]


def test_an_executor_without_sparklog_says_what_it_has():
    cloudpickle.register_pickle_by_value(environment)
    task = cloudpickle.dumps(partial(doubled))
    shipped = cloudpickle.dumps(environment.guarded(task, environment.environment()))
    ran = subprocess.run(
        [sys.executable, "-c", UNPICKLES], input=shipped, capture_output=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr.decode()
    [(word, found)] = pickle.loads(bytes.fromhex(ran.stdout.decode()))
    assert word == environment.REFUSED
    assert found == {**environment.environment(), "sparklog": environment.NOTHING}
    assert found["pyspark"] == pyspark.__version__


@pytest.mark.parametrize("name", environment.COMPARED)
def test_one_version_that_differs_is_refused_before_the_task_is_unpickled(name):
    wanted = {**environment.environment(), name: "another"}
    assert list(environment.guarded(b"no pickle", wanted)(iter([]))) == [
        (environment.REFUSED, environment.environment())
    ]


def test_a_task_runs_where_the_path_of_python_alone_differs():
    wanted = {**environment.environment(), "host": "driver", "executable": str(Path("/elsewhere"))}
    assert list(environment.guarded(pickle.dumps(sorted), wanted)(iter([2, 1]))) == [1, 2]
