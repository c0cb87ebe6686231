"""Kafka's settings of security whose promise sparklog does not keep yet, with the defaults of Kafka 3.9.

At its default such a setting asks for nothing. An empty default is Kafka's null.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sparklog.model.settings.kafka_names import AUTHORIZER_PREFIX


def _defaults(lines: str) -> Mapping[str, str]:
    pairs = (line.strip().partition("=") for line in lines.split("\n") if line.strip())
    return MappingProxyType({name: default for name, _, default in pairs})


JAVA_TLS: Final = _defaults(
    """
        security.providers=
        ssl.allow.dn.changes=false
        ssl.allow.san.changes=false
        ssl.engine.factory.class=
        ssl.keymanager.algorithm=SunX509
        ssl.provider=
        ssl.secure.random.implementation=
        ssl.trustmanager.algorithm=PKIX
    """
)
"""Choices among Java's implementations, and of what AlterConfigs may change."""

LOGIN: Final = _defaults(
    """
        delegation.token.expiry.check.interval.ms=3600000
        delegation.token.expiry.time.ms=86400000
        delegation.token.master.key=
        delegation.token.max.lifetime.ms=604800000
        delegation.token.secret.key=
        principal.builder.class=org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
        sasl.client.callback.handler.class=
        sasl.kerberos.kinit.cmd=/usr/bin/kinit
        sasl.kerberos.min.time.before.relogin=60000
        sasl.kerberos.principal.to.local.rules=DEFAULT
        sasl.kerberos.service.name=
        sasl.kerberos.ticket.renew.jitter=0.05
        sasl.kerberos.ticket.renew.window.factor=0.8
        sasl.login.callback.handler.class=
        sasl.login.class=
        sasl.login.connect.timeout.ms=
        sasl.login.read.timeout.ms=
        sasl.login.refresh.buffer.seconds=300
        sasl.login.refresh.min.period.seconds=60
        sasl.login.refresh.window.factor=0.8
        sasl.login.refresh.window.jitter=0.05
        sasl.login.retry.backoff.max.ms=10000
        sasl.login.retry.backoff.ms=100
        sasl.mechanism.controller.protocol=GSSAPI
        sasl.oauthbearer.clock.skew.seconds=30
        sasl.oauthbearer.expected.audience=
        sasl.oauthbearer.expected.issuer=
        sasl.oauthbearer.jwks.endpoint.refresh.ms=3600000
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms=10000
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms=100
        sasl.oauthbearer.jwks.endpoint.url=
        sasl.oauthbearer.scope.claim.name=scope
        sasl.oauthbearer.sub.claim.name=sub
        sasl.oauthbearer.token.endpoint.url=
        sasl.server.callback.handler.class=
    """
)

REVOCATION: Final = _defaults(
    """
        zookeeper.ssl.crl.enable=false
        zookeeper.ssl.ocsp.enable=false
    """
)
"""Looking for certificates that were revoked."""

_OF_ZOOKEEPER: Final = _defaults(
    """
        zookeeper.clientCnxnSocket=
        zookeeper.ssl.cipher.suites=
        zookeeper.ssl.client.enable=false
        zookeeper.ssl.crl.enable=false
        zookeeper.ssl.enabled.protocols=
        zookeeper.ssl.endpoint.identification.algorithm=HTTPS
        zookeeper.ssl.keystore.location=
        zookeeper.ssl.keystore.password=
        zookeeper.ssl.keystore.type=
        zookeeper.ssl.ocsp.enable=false
        zookeeper.ssl.protocol=TLSv1.2
        zookeeper.ssl.truststore.location=
        zookeeper.ssl.truststore.password=
        zookeeper.ssl.truststore.type=
    """
)

RULES: Final = MappingProxyType(
    {
        "authorizer.zookeeper.url": "",
        "authorizer.zookeeper.connection.timeout.ms": "",
        "authorizer.zookeeper.session.timeout.ms": "",
        "authorizer.zookeeper.max.in.flight.requests": "10",
        **{f"{AUTHORIZER_PREFIX}{name}": default for name, default in _OF_ZOOKEEPER.items()},
    }
)
"""The authorizer may have a ZooKeeper of its own."""

STORED_PASSWORDS: Final = _defaults(
    """
        password.encoder.cipher.algorithm=AES/CBC/PKCS5Padding
        password.encoder.iterations=4096
        password.encoder.key.length=128
        password.encoder.keyfactory.algorithm=
        password.encoder.old.secret=
        password.encoder.secret=
    """
)

LIMITS: Final = _defaults(
    """
        client.quota.callback.class=
    """
)

POLICIES: Final = _defaults(
    """
        alter.config.policy.class.name=
        create.topic.policy.class.name=
    """
)

DELETION: Final = MappingProxyType({"delete.topic.enable": "true"})
