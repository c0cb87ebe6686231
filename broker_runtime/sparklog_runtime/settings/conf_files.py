"""The commented settings files that the package carries, and what Spark's one of them says.

    server.properties      settings of brokers and controller
    spark-defaults.conf    settings of Spark: what ``start`` and ``submit`` use on a cluster by themselves
    log4j2.properties      where Spark's own log goes
    monitoring/            what Prometheus scrapes and alerts of, and a dashboard for Grafana

They lie in ``conf/`` at the top of a clone, and in ``sparklog_runtime/conf`` of an installed package, where
the wheel puts them (``pyproject.toml``).
"""

from pathlib import Path
from typing import Final

from sparklog.model.errors import SparklogError
from sparklog.model.settings.settings_text import parse_spark_properties

SERVER_FILE: Final = "server.properties"
SPARK_FILE: Final = "spark-defaults.conf"
LOG4J_FILE: Final = "log4j2.properties"
MONITORING_FILES: Final = ("monitoring/prometheus.yml", "monitoring/alerts.yml", "monitoring/dashboard.json")
CONF_FILES: Final = (SERVER_FILE, SPARK_FILE, LOG4J_FILE, *MONITORING_FILES)
"""By their paths within the folder."""

_PACKAGE: Final = Path(__file__).parents[1]


def conf_folder() -> Path:
    """Where this installation has the settings files; SparklogError if it lacks them."""
    for folder in (_PACKAGE / "conf", _PACKAGE.parents[1] / "conf"):
        if all((folder / name).is_file() for name in CONF_FILES):
            return folder
    raise SparklogError(
        f"this installation of sparklog lacks its settings files: {_PACKAGE / 'conf'} does not have "
        f"{', '.join(CONF_FILES)}; install the wheel again"
    )


def cluster_spark_conf() -> dict[str, str]:
    """Spark settings for brokers on a cluster, whatever their number."""
    return parse_spark_properties((conf_folder() / SPARK_FILE).read_text(encoding="utf-8"))


def spark_log_options(spark_log: Path, log4j_file: Path | None = None) -> str:
    """Java options with which Spark's log goes to ``spark_log``, and nothing of it to the screen.

    ``log4j_file`` None stands for the package's own.
    """
    options = {
        "log4j2.configurationFile": (log4j_file or conf_folder() / LOG4J_FILE).absolute().as_uri(),
        "sparklog.spark.log": str(spark_log),
    }
    return " ".join(_quoted(f"-D{name}={value}") for name, value in options.items())


def _quoted(option: str) -> str:
    """As Spark's launcher splits options: at blanks, but for those between double quotes."""
    if not any(character in option for character in " \t\"'\\"):
        return option
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
