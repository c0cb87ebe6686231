"""The ``spark-submit`` command line that ``sparklog submit`` runs.

Spark's settings come from three places; a later one overrides an earlier one:

1. what brokers need (``spark-defaults.conf`` of the package, and as many executors as there are brokers),
2. ``spark-defaults.conf`` beside the settings file, if it exists,
3. ``--conf`` and ``--name``.

What differs from the second is given to ``spark-submit`` as ``--conf``, so that the command shows it. Spark's
log goes where ``log4j2.properties`` beside the settings file says, or else the package's.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.settings.settings_text import parse_spark_properties
from sparklog_runtime.settings.conf_files import (
    LOG4J_FILE,
    SPARK_FILE,
    cluster_spark_conf,
    spark_log_options,
)
from sparklog_runtime.settings.properties import read_properties
from sparklog_runtime.settings.settings_check import is_local
from sparklog_runtime.start.cluster_folders import Layout
from sparklog_runtime.start.cluster_options import ClusterOptions, driver_address_conf, sized_for
from sparklog_runtime.start.session import spark_submit_program
from sparklog_runtime.submission.entry_point import ENTRY_POINT

JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
EXECUTOR_PYTHON: Final = "spark.pyspark.python"
DRIVER_PYTHON: Final = "spark.pyspark.driver.python"
DEPLOY_MODE: Final = "spark.submit.deployMode"


@dataclass(frozen=True, slots=True)
class SparkCommand:
    """What is run: arguments, the environment variables that are added, and Spark's settings as they hold."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    spark_conf: Mapping[str, str]

    def __str__(self) -> str:
        """As a shell takes it."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*variables, shlex.join(self.arguments)])


def spark_command(
    options: ClusterOptions, settings_file: Path, conf: Mapping[str, str], environment: Mapping[str, str]
) -> SparkCommand:
    """The command for these options; ``conf`` is what ``--conf`` said, ``environment`` the process's own.

    Raises ConfigError for settings with which no driver of brokers could run.
    """
    spark_file = settings_file.parent / SPARK_FILE
    in_file = read_properties(spark_file, parse_spark_properties) if spark_file.is_file() else {}
    _check(conf, in_file, spark_file)
    log4j_file = settings_file.parent / LOG4J_FILE
    spark_conf = _merged(
        options, {**in_file, **conf}, environment, log4j_file if log4j_file.is_file() else None
    )
    program = spark_submit_program()
    arguments = [str(program), "--master", options.spark_master()]
    if in_file:
        arguments += ["--properties-file", str(spark_file)]
    for name, value in spark_conf.items():
        if in_file.get(name) != value:
            arguments += ["--conf", f"{name}={value}"]
    arguments += [str(ENTRY_POINT), *_entry_arguments(options, settings_file)]
    return SparkCommand(tuple(arguments), {"SPARK_HOME": str(program.parents[1])}, spark_conf)


def _merged(
    options: ClusterOptions,
    given: Mapping[str, str],
    environment: Mapping[str, str],
    log4j_file: Path | None,
) -> dict[str, str]:
    """Settings as they will hold, those of the user over ours."""
    master, spark_log = options.spark_master(), Layout.at(options.root).spark_log
    ours = {
        "spark.app.name": options.application_name(),
        **driver_address_conf(options),
        DRIVER_PYTHON: sys.executable,
        EXECUTOR_PYTHON: environment.get("PYSPARK_PYTHON") or sys.executable,
        **cluster_spark_conf(),
    }
    merged = {**ours, **given}
    java_options = f"{spark_log_options(spark_log, log4j_file)} {merged.get(JAVA_OPTIONS, '')}".strip()
    merged[JAVA_OPTIONS] = java_options
    return merged if is_local(master) else sized_for(options.brokers, master, merged)


def _check(conf: Mapping[str, str], in_file: Mapping[str, str], spark_file: Path) -> None:
    """Refuse what Spark would ignore, and a driver that would run elsewhere."""
    for where, settings in (("--conf", conf), (str(spark_file), in_file)):
        for name, value in settings.items():
            if not name.startswith("spark."):
                raise ConfigError(
                    f"{where}: {name}={value} is no setting of Spark, whose names begin with 'spark.'; "
                    "settings of brokers belong in the file that --settings names"
                )
            if name == "spark.master":
                raise ConfigError(f"{where}: spark.master={value}: leave it out, --master names the master")
            if name == DEPLOY_MODE and value != "client":
                raise ConfigError(
                    f"{where}: {DEPLOY_MODE}={value}: the driver runs here, where --root is; set it to client"
                )


def _entry_arguments(options: ClusterOptions, settings_file: Path) -> list[str]:
    arguments = ["--brokers", str(options.brokers), "--settings", str(settings_file)]
    if options.broker_ids:
        arguments += ["--broker-ids", ",".join(map(str, options.broker_ids))]
    return [*arguments, "--port", str(options.port), "--root", os.path.abspath(options.root)]
