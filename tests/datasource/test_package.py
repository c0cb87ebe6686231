"""Spark finds the package by itself, and importing it costs and breaks nothing."""

import pkgutil
import re
import subprocess
import sys

from pyspark.sql.datasource import DataSource

import pyspark_sparklog
from sparklog_datasource.options.option_names import READ_OPTIONS, WRITE_OPTIONS
from tests.pages import DOCS


def test_sparks_discovery_can_see_it() -> None:
    assert "pyspark_sparklog" in {module.name for module in pkgutil.iter_modules()}
    assert issubclass(pyspark_sparklog.DefaultSource, DataSource)
    assert pyspark_sparklog.DefaultSource.name() == "sparklog"


def test_completion_offers_what_is_for_users_and_nothing_else() -> None:
    assert dir(pyspark_sparklog) == sorted(pyspark_sparklog.__all__)


def test_help_begins_with_an_example_every_option_and_three_links() -> None:
    text = pyspark_sparklog.__doc__ or ""
    assert '.format("sparklog")' in text.partition("Options have")[0]
    names = set(re.findall(r"[\w.]+", text))
    quiet = {"groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries",
             "fetchOffset.retryIntervalMs", "kafka.bootstrap.servers"}  # fmt: skip
    assert {*READ_OPTIONS, *WRITE_OPTIONS} - names == quiet
    links = re.findall(r"docs/\w[\w-]*\.md", text)
    assert len(links) == 3
    assert all((DOCS.parent / link).exists() for link in links)


def test_help_lists_no_module_that_is_not_for_users() -> None:
    assert list(pkgutil.iter_modules(pyspark_sparklog.__path__)) == []


def test_importing_it_loads_nothing_of_ours_but_itself() -> None:
    script = (
        "import sys, pyspark.sql.datasource\n"
        "before = set(sys.modules)\n"
        "import pyspark_sparklog\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['pyspark_sparklog']"
