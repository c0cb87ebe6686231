"""The settings of logins, with Kafka's names: those of all listeners, or of one under its prefix."""

from typing import Final

from sparklog.model.settings.kafka_names import without_listener
from sparklog.model.settings.setting import INT_MAX, LONG_MAX, Setting

ENABLED_MECHANISMS: Final = "sasl.enabled.mechanisms"
BROKERS_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
JAAS_CONFIG: Final = "sasl.jaas.config"
SESSION_MAX: Final = "connections.max.reauth.ms"
PLAIN_WITHOUT_TLS: Final = "sasl.plain.without.tls"
UNAUTHENTICATED_SPARK: Final = "allow.unauthenticated.spark"

LOGIN_SETTINGS: Final = (
    Setting(ENABLED_MECHANISMS, "list", ("GSSAPI",),
            "How clients log in: SCRAM-SHA-256, SCRAM-SHA-512, PLAIN. Kafka's default cannot be served.",
            pattern=r"[A-Z0-9_-]+"),
    Setting(BROKERS_MECHANISM, "string", "GSSAPI",
            "How brokers and the controller log in at each other: one of sasl.enabled.mechanisms."),
    Setting(JAAS_CONFIG, "string", "",
            "As listener.name.NAME.MECHANISM.sasl.jaas.config: the users of PLAIN, and the user that brokers "
            "log in as. Passwords in it are references."),
    Setting(SESSION_MAX, "int", 0,
            "How long a login lasts, after which the client logs in anew or is disconnected; 0: for ever.",
            0, LONG_MAX),
    Setting("sasl.server.max.receive.size", "int", 524_288,
            "Bytes of a request before the login is complete.", 1_024, INT_MAX),
    Setting("connection.failed.authentication.delay.ms", "int", 100,
            "How long a refused login waits for its answer.", 0, 60_000),
    Setting("connections.login.timeout.ms", "int", 10_000,
            "How long a client may take for its TLS handshake and its login. Sparklog's own.", 100, INT_MAX),
    Setting(PLAIN_WITHOUT_TLS, "bool", False,
            "Serve PLAIN, which sends passwords as they are, without encryption. Sparklog's own."),
    Setting(UNAUTHENTICATED_SPARK, "bool", False,
            "Start brokers with logins on several machines in a Spark without authentication or encryption. "
            "Sparklog's own."),
)  # fmt: skip

_OF_ONE_LISTENER: Final = frozenset({ENABLED_MECHANISMS, JAAS_CONFIG, SESSION_MAX})


def is_login_setting(name: str) -> bool:
    """Whether ``name`` is a kept setting of logins that one listener may have, or one of its mechanisms."""
    return without_listener(name) in _OF_ONE_LISTENER
