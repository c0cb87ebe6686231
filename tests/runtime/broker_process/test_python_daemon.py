"""What the daemon imports before it forks brokers."""

import subprocess
import sys

PROGRAM = """
from sparklog_runtime.broker_process.python_daemon import preload, thread_count
import sys
preload()
assert thread_count() == 1, thread_count()
assert not {"numpy", "pyarrow", "pandas"} & set(sys.modules), "they start threads"
assert {"pyspark.worker", "kazoo.client", "sparklog.wire.messages.data.fetch"} <= set(sys.modules)
"""


def test_what_is_imported_before_the_fork_starts_no_thread():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
