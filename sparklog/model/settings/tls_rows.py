"""The settings of TLS, with Kafka's names: those of all listeners, or of one under its prefix; and those of
metrics, which Kafka has not.
"""

from collections.abc import Mapping
from typing import Final

from sparklog.model.settings.kafka_names import without_listener
from sparklog.model.settings.setting import Setting

TLS_SETTINGS: Final = (
    Setting("ssl.keystore.location", "string", "",
            "File with the broker's certificates and private key: PEM or PKCS12, known by its content."),
    Setting("ssl.keystore.type", "string", "JKS", "Accepted; the content decides. A JKS file is refused."),
    Setting("ssl.keystore.password", "string", "", "Password of a PKCS12 key store, as a reference."),
    Setting("ssl.keystore.key", "string", "", "The private key itself, PEM, as a reference."),
    Setting("ssl.keystore.certificate.chain", "string", "",
            "The certificates of ssl.keystore.key, PEM, the broker's first."),
    Setting("ssl.key.password", "string", "", "Password of an encrypted key in PEM, as a reference."),
    Setting("ssl.truststore.location", "string", "",
            "File with the authorities that are trusted: PEM or PKCS12. Without any, the system's."),
    Setting("ssl.truststore.type", "string", "JKS", "Accepted; the content decides. A JKS file is refused."),
    Setting("ssl.truststore.password", "string", "", "Password of a PKCS12 trust store, as a reference."),
    Setting("ssl.truststore.certificates", "string", "", "The authorities themselves, PEM."),
    Setting("ssl.client.auth", "string", "none", "Whether clients show certificates.",
            choices=("none", "requested", "required")),
    Setting("ssl.principal.mapping.rules", "string", "DEFAULT",
            "How a certificate's name becomes a principal's: RULE:PATTERN/REPLACEMENT/[LU] or DEFAULT, "
            "separated by commas."),
    Setting("ssl.enabled.protocols", "list", ("TLSv1.2", "TLSv1.3"), "Versions that are spoken.",
            choices=("TLSv1.2", "TLSv1.3")),
    Setting("ssl.protocol", "string", "TLSv1.3", "Accepted; ssl.enabled.protocols decides.",
            choices=("TLS", "TLSv1.2", "TLSv1.3")),
    Setting("ssl.cipher.suites", "list", (),
            "Cipher suites by Java's names; none for OpenSSL's choice. Of TLS 1.3 all three or none.",
            pattern=r"\w+"),
    Setting("ssl.endpoint.identification.algorithm", "string", "https",
            "Empty: brokers and the controller do not compare certificates with the hosts that they dial."),
)  # fmt: skip

METRICS_TLS: Final = "metrics.ssl.enable"
METRICS_CLIENT_AUTH: Final = "metrics.ssl.client.auth"

METRICS_TLS_SETTINGS: Final = (
    Setting(METRICS_TLS, "bool", False,
            "Serve metrics over TLS alone, with the key store and the trust store of ssl.*."),
    Setting(METRICS_CLIENT_AUTH, "string", "none", "Whether clients that read metrics show certificates.",
            choices=("none", "requested", "required")),
)  # fmt: skip

METRICS_TLS_NAMES: Final = frozenset(setting.name for setting in METRICS_TLS_SETTINGS)

TLS_NAMES: Final = frozenset(setting.name for setting in TLS_SETTINGS)


def is_tls_setting(name: str) -> bool:
    """Whether ``name`` is a kept setting of TLS, of all listeners or of one."""
    return without_listener(name) in TLS_NAMES


def metrics_have_tls(given: Mapping[str, str]) -> bool:
    """Whether metrics are served over TLS."""
    return given.get(METRICS_TLS, "").strip().lower() == "true"
