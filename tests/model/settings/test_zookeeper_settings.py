"""What settings may ask of ZooKeeper, and what is refused."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig, check_broker_settings
from sparklog.model.settings.secrets import Secret
from sparklog.model.settings.tls_settings import StoreFile, TlsSettings
from sparklog.model.settings.zookeeper_settings import ZooKeeperSettings, refuse_unfit_digest

REFERENCE = "${file:/secrets:zookeeper}"


def test_nothing_is_shown_and_nothing_closed_unless_settings_say_so() -> None:
    assert BrokerConfig().zookeeper == ZooKeeperSettings(digest=None, closes_nodes=False)


@pytest.mark.parametrize("digest", [REFERENCE, f"broker:{REFERENCE}", "${env:USER_AND_PASSWORD}"])
def test_a_digest_is_a_reference_of_which_the_user_may_stand_there_as_it_is(digest: str) -> None:
    config = BrokerConfig.parse({"zookeeper.digest": digest, "zookeeper.set.acl": "true"})
    assert config.zookeeper == ZooKeeperSettings(Secret(digest), closes_nodes=True)


@pytest.mark.parametrize("digest", ["broker:hush", "hush", f"hush{REFERENCE}", "broker:", ":hush"])
def test_a_literal_password_is_refused_and_not_shown(digest: str) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.digest=\[hidden\]: it is a secret") as refused:
        check_broker_settings({"zookeeper.digest": digest})
    assert "hush" not in str(refused.value)


def test_nodes_are_not_closed_to_everybody() -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.digest, which is not set; set it"):
        check_broker_settings({"zookeeper.set.acl": "true"})


@pytest.mark.parametrize("digest", ["broker", ":hush", "broker:", "", "broker:hush\nnext"])
def test_what_a_reference_names_must_have_a_user_and_a_password(digest: str) -> None:
    with pytest.raises(ConfigError, match="is not of the form USER:PASSWORD") as refused:
        refuse_unfit_digest(digest)
    assert "hush" not in str(refused.value)


def test_tls_is_asked_for_by_kafkas_names_and_no_setting_of_listeners_stands_in() -> None:
    given = {
        "ssl.keystore.location": "/listeners.pem",
        "listeners": "SSL://:9092",
        "security.inter.broker.protocol": "SSL",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.truststore.location": "/authority.pem",
        "zookeeper.ssl.truststore.type": "PEM",
        "zookeeper.ssl.enabled.protocols": "",
        "zookeeper.ssl.endpoint.identification.algorithm": "",
    }
    tls = BrokerConfig.parse(given).zookeeper.tls
    assert tls == TlsSettings(
        trust_store=StoreFile("zookeeper.ssl.truststore.location", "/authority.pem", None),
        checks_host_names=False,
    )


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("zookeeper.ssl.keystore.password", "hush", r"\[hidden\]: it is a secret"),
        ("zookeeper.ssl.truststore.password", "hush", r"\[hidden\]: it is a secret"),
        ("zookeeper.ssl.enabled.protocols", "TLSv1.1", "is not of the form"),
        ("zookeeper.ssl.cipher.suites", "NONE", r"zookeeper\.ssl\.cipher\.suites"),
        ("zookeeper.ssl.keystore.type", "BCFKS", "must be one of JKS, PKCS12, PEM"),
        ("zookeeper.ssl.ocsp.enable", "true", "does not ask whether certificates were revoked"),
        ("zookeeper.clientCnxnSocket", "Mine", "must be one of"),
    ],
)
def test_what_tls_cannot_be_is_refused(name: str, value: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        check_broker_settings({"zookeeper.ssl.client.enable": "true", name: value})
    assert name in str(refused.value)
    assert "hush" not in str(refused.value)


def test_stores_without_tls_have_no_effect_and_a_warning() -> None:
    (warning,) = check_broker_settings({"zookeeper.ssl.keystore.location": "/key.pem"}).warnings
    assert warning == (
        "zookeeper.ssl.keystore.location has no effect without zookeeper.ssl.client.enable=true"
    )


def test_a_password_may_have_colons() -> None:
    refuse_unfit_digest("broker:a:b")
