"""The file that spark-submit runs, in whichever Python Spark chose."""

import shutil
import subprocess
import sys

from sparklog_runtime import submit


def test_a_python_without_sparklog_is_told_with_the_one_that_has_it(tmp_path):
    """As in a virtual environment: the file finds the Python beside it."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    copy = tmp_path / "lib" / "site-packages" / "sparklog_runtime" / "submit.py"
    copy.parent.mkdir(parents=True)
    shutil.copy(submit.__file__, copy)
    ran = subprocess.run([sys.executable, "-I", "-S", copy], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.startswith(
        f"sparklog: {sys.executable}, with which Spark runs the driver, has no module"
    )
    assert f"--conf spark.pyspark.python={python}" in ran.stderr
