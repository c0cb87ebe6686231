"""Brokers that ask for logins want a Spark that strangers can neither use nor overhear."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog_runtime.settings.spark_security import check_spark_security, missing_security

LOGINS = BrokerConfig({"listeners": "SASL_SSL://:9092", "security.inter.broker.protocol": "SASL_SSL"})
AUTHENTICATED = {"spark.authenticate": "true"}
GCM = {"spark.network.crypto.cipher": "AES/GCM/NoPadding"}
ENCRYPTED = {**AUTHENTICATED, "spark.network.crypto.enabled": "true", **GCM}


@pytest.mark.parametrize("conf", [ENCRYPTED, {**AUTHENTICATED, "spark.ssl.rpc.enabled": "True "}])
def test_a_spark_that_authenticates_and_encrypts_is_taken(conf: dict[str, str]) -> None:
    check_spark_security(conf, LOGINS, is_here=False)


@pytest.mark.parametrize(
    ("conf", "missing"),
    [
        ({}, "set spark.authenticate=true, spark.network.crypto.enabled=true"),
        (AUTHENTICATED, "set spark.network.crypto.enabled=true (or spark.ssl.rpc.enabled=true), "),
        ({**ENCRYPTED, "spark.authenticate": "false"}, "set spark.authenticate=true; or "),
        ({**ENCRYPTED, "spark.network.crypto.cipher": "AES/CTR"}, "set spark.network.crypto.cipher"),
        ({"spark.ssl.rpc.enabled": "true"}, "set spark.authenticate=true; or allow.unauthenticated"),
    ],
)  # fmt: skip
def test_what_a_spark_lacks_is_named(conf: dict[str, str], missing: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_spark_security(conf, LOGINS, is_here=False)
    assert missing in str(refused.value)


def test_nothing_is_asked_on_this_machine_without_logins_or_where_the_operator_trusts_all() -> None:
    check_spark_security({}, LOGINS, is_here=True)
    check_spark_security({}, BrokerConfig(), is_here=False)
    trusting = BrokerConfig({**LOGINS.given, "allow.unauthenticated.spark": True})
    check_spark_security({}, trusting, is_here=False)


def test_what_is_trusted_all_the_same_is_a_warning() -> None:
    trusting = BrokerConfig({**LOGINS.given, "allow.unauthenticated.spark": True})
    (warning,) = missing_security({}, trusting, is_here=False)
    assert "allow.unauthenticated.spark=true allows it: set spark.authenticate=true" in warning
    assert missing_security(ENCRYPTED, trusting, is_here=False) == []
    assert missing_security({}, trusting, is_here=True) == []
