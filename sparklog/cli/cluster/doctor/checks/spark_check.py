"""Spark settings of the applications that run brokers, as their drivers published them. PURE."""

from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity

NAME: Final = "spark"


def examine_spark_settings(facts: ClusterFacts) -> Iterator[Finding]:
    for driver in [] if facts.report is None else facts.report.controllers:
        for warning in driver.spark_warnings:
            yield Finding(
                NAME,
                Severity.warning,
                f"application {driver.application}",
                warning,
                "brokers are Spark's tasks: what ends, delays or opens those does it to brokers",
                "set it in spark-defaults.conf, or with --conf, and start the application again",
            )


SPARK: Final = Check(
    NAME, (Part.report,), "Spark settings of applications suit their brokers", examine_spark_settings
)
