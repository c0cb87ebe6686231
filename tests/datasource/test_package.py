"""Spark finds the package by itself, and importing it costs and breaks nothing."""

import pkgutil
import subprocess
import sys

from pyspark.sql.datasource import DataSource

import pyspark_sparklog


def test_sparks_discovery_can_see_it() -> None:
    assert "pyspark_sparklog" in {module.name for module in pkgutil.iter_modules()}
    assert issubclass(pyspark_sparklog.DefaultSource, DataSource)
    assert pyspark_sparklog.DefaultSource.name() == "sparklog"


def test_importing_it_loads_nothing_of_ours_but_itself() -> None:
    script = (
        "import sys, pyspark.sql.datasource\n"
        "before = set(sys.modules)\n"
        "import pyspark_sparklog\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['pyspark_sparklog']"
