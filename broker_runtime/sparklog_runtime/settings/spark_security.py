"""Whether Spark lets strangers do what brokers that ask for logins keep them from.

Brokers are tasks of Spark: whoever may submit code to the application owns them, and a run's token travels in
the clear unless Spark encrypts. On this machine alone nobody else is on the way.
"""

from collections.abc import Mapping
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.login_rows import UNAUTHENTICATED_SPARK

AUTHENTICATED_CIPHER: Final = "AES/GCM/NoPadding"
CIPHER: Final = "spark.network.crypto.cipher"
"""Spark's own default has no authentication (CVE-2025-55039)."""


def check_spark_security(conf: Mapping[str, str], config: BrokerConfig, *, is_here: bool) -> None:
    """ConfigError with all that is missing in Spark's ``conf``. ``is_here``: no other machine takes part."""
    if config.get_bool(UNAUTHENTICATED_SPARK):
        return
    if missing := _missing(conf, config, is_here=is_here):
        raise ConfigError(
            "clients log in at these brokers, but whoever reaches Spark's ports could take the brokers over, "
            f"or read what they are sent: set {', '.join(missing)}; or {UNAUTHENTICATED_SPARK}=true, if "
            "only those reach them whom you trust"
        )


def missing_security(conf: Mapping[str, str], config: BrokerConfig, *, is_here: bool) -> list[str]:
    """A warning where ``allow.unauthenticated.spark`` lets brokers start all the same; else nothing."""
    missing = _missing(conf, config, is_here=is_here)
    if not missing:
        return []
    return [
        "clients log in at these brokers, but whoever reaches Spark's ports could take the brokers over, and "
        f"{UNAUTHENTICATED_SPARK}=true allows it: set {', '.join(missing)}"
    ]


def _missing(conf: Mapping[str, str], config: BrokerConfig, *, is_here: bool) -> list[str]:
    if is_here or not config.listeners.with_login():
        return []
    missing = [] if _is_true(conf, "spark.authenticate") else ["spark.authenticate=true"]
    if not _is_true(conf, "spark.ssl.rpc.enabled"):
        if not _is_true(conf, "spark.network.crypto.enabled"):
            missing.append("spark.network.crypto.enabled=true (or spark.ssl.rpc.enabled=true)")
        if conf.get(CIPHER, "").strip() != AUTHENTICATED_CIPHER:
            missing.append(f"{CIPHER}={AUTHENTICATED_CIPHER}")
    return missing


def _is_true(conf: Mapping[str, str], name: str) -> bool:
    return conf.get(name, "false").strip().lower() == "true"
