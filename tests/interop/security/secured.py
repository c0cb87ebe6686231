"""A cluster of ours for a network that nobody trusts: TLS, logins, access rules, quotas.

Brokers log in at each other over TLS. Clients log in at one listener, show certificates at a second one, and
at a third one have to log in again and again. Each test names a user, and how the user proves who it is; what
``SecuredCluster`` answers is the ``security`` that drivers and tools take (``tests/interop/driver.py``).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificates

from sparklog.client.access_rules import create_rules
from sparklog.client.group.committed_offsets import commit_offsets, fetch_committed
from sparklog.client.group.group_admin import GroupAdmin
from sparklog.client.security.quota_admin import QuotaAdmin
from sparklog.client.security.user_admin import UserAdmin
from sparklog.core.controller.commands.acl_commands import AclBinding
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rules import Pattern, PatternType, Rule
from sparklog.model.ids import TopicPartition
from sparklog.model.quota_entity import USER, QuotaEntity
from sparklog.model.settings.jaas import PLAIN_MODULE, SCRAM_MODULE
from sparklog.testing import InProcessCluster
from tests.certificates import Authority
from tests.closed_files import write_closed

SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = ("PLAIN", *SCRAM)
ADMIN: Final = "admin"
"""A super user, as the brokers' own user is."""
ALICE: Final = "alice"
"""May do everything with topics, groups and transactional ids whose names begin with ``alice-``."""
SLOW: Final = "slow"
"""As alice, but with quotas."""
USERS: Final = ("broker", ADMIN, ALICE, SLOW)
PASSWORD: Final = "wonder,land=ä"
OF_STORES: Final = "of-the-stores"
LOGINS: Final = "LOGINS"
MUTUAL: Final = "MUTUAL"
SHORT: Final = "SHORT"
SESSION_MS: Final = 1_000
QUOTA_BYTES_PER_S: Final = 50_000
"""What ``slow`` may write and read of each broker."""
QUOTA_WINDOW_S: Final = 1
ITERATIONS: Final = 4_096

Security = dict[str, str]


def java_properties(security: Security) -> dict[str, str]:
    """What Java's clients take for the ``security`` of a user who logs in by SCRAM."""
    return {
        "security.protocol": security["protocol"],
        "ssl.truststore.location": security["trust_store"],
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.password": security["store_password"],
        "sasl.mechanism": security["mechanism"],
        "sasl.jaas.config": (
            f'{SCRAM_MODULE} required username="{security["user"]}" password="{security["password"]}";'
        ),
    }


class SecuredCluster:
    """Three brokers, and the users that they know. ``cluster.client`` is a super user's."""

    def __init__(self, cluster: InProcessCluster, authority: Authority) -> None:
        self.cluster = cluster
        self._authority = authority

    def servers(self, listener: str = LOGINS) -> str:
        """The addresses of a listener at all brokers."""
        return ",".join(broker.addresses[listener] for broker in self.cluster.brokers.values())

    def commit(self, group: str, topic: str) -> None:
        """Have a group with an offset, as a super user."""
        coordinator = GroupAdmin(self.cluster.client).coordinator(group)
        assert commit_offsets(coordinator, {TopicPartition(topic, 0): 0}) == {}

    def delay_ms(self, user: str, quota: str) -> int:
        """How long the user would have to wait now, at the broker that it has used most."""
        used = (broker.body.context.quotas.used()[quota] for broker in self.cluster.brokers.values())
        return max(
            (one.delay_ms for entities in used for one in entities if one.shared.user == user), default=0
        )

    def login(self, user: str, mechanism: str = "SCRAM-SHA-512", password: str = PASSWORD) -> Security:
        """Who logs in over TLS."""
        return {
            "protocol": "SASL_SSL",
            "mechanism": mechanism,
            "user": user,
            "password": password,
            **self._trusted(self._authority),
        }

    def certificate(self, user: str) -> Security:
        """Who shows a certificate, and logs in by nothing else."""
        pem = self._authority.issue(user, f"{user}.example")
        key = load_pem_private_key(pem.read_bytes(), None)
        (certificate, *_) = load_pem_x509_certificates(pem.read_bytes())
        store = pem.with_suffix(".p12")
        store.write_bytes(
            pkcs12.serialize_key_and_certificates(
                user.encode(), key, certificate, None, BestAvailableEncryption(OF_STORES.encode())
            )
        )
        return {
            "protocol": "SSL",
            "certificate": str(pem),
            "key_store": str(store),
            **self._trusted(self._authority),
        }

    def of_another_authority(self, user: str) -> Security:
        """Who logs in, but trusts an authority that is not the brokers'."""
        other = Authority(self._authority.root / "other")
        return {**self.login(user), **self._trusted(other)}

    @staticmethod
    def _trusted(authority: Authority) -> Security:
        """The authority as PEM, and as Java's releases before 2.7 read it."""
        (certificate,) = load_pem_x509_certificates(authority.file.read_bytes())
        store = authority.file.with_suffix(".p12")
        trusted = pkcs12.PKCS12Certificate(certificate, b"authority")
        store.write_bytes(
            pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(OF_STORES.encode()))
        )
        return {"ca": str(authority.file), "trust_store": str(store), "store_password": OF_STORES}


def _settings(authority: Authority, secrets: Path) -> dict[str, str]:
    write_closed(secrets, "".join(f"{user}={PASSWORD}\n" for user in USERS))
    of_all = " ".join(f'user_{user}="${{file:{secrets}:{user}}}"' for user in USERS)
    settings = {
        "listeners": f"INSIDE://:0,{LOGINS}://:0,{MUTUAL}://:0,{SHORT}://:0",
        "listener.security.protocol.map": (
            f"INSIDE:SASL_SSL,{LOGINS}:SASL_SSL,{MUTUAL}:SSL,{SHORT}:SASL_SSL"
        ),
        "inter.broker.listener.name": "INSIDE",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
        "connection.failed.authentication.delay.ms": "10",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:broker;User:{ADMIN}",
        "quota.window.num": "2",
        "quota.window.size.seconds": str(QUOTA_WINDOW_S),
        **authority.settings(authority.issue("broker")),
    }
    for listener in ("inside", LOGINS.lower(), SHORT.lower()):
        settings[f"listener.name.{listener}.plain.sasl.jaas.config"] = (
            f'{PLAIN_MODULE} required username=broker password="${{file:{secrets}:broker}}" {of_all};'
        )
        for mechanism in MECHANISMS:
            name = f"listener.name.{listener}.{mechanism.lower()}.connections.max.reauth.ms"
            settings[name] = str(SESSION_MS if listener == SHORT.lower() else 0)
    return settings


def own_names(user: str) -> list[AclBinding]:
    """Rules that let a user do everything with what bears its name."""
    kinds = (ResourceType.topic, ResourceType.group, ResourceType.transactional_id)
    mine = [Pattern(kind, f"{user}-", PatternType.prefixed) for kind in kinds]
    return [AclBinding(pattern, Rule(f"User:{user}", AclOperation.all)) for pattern in mine]


OF_READERS: Final = AclBinding(
    Pattern(ResourceType.group, "reader", PatternType.prefixed), Rule("User:*", AclOperation.read)
)
"""Some drivers read in groups of that name where others need none."""


@contextmanager
def secured_cluster(root: Path, settings: dict[str, str]) -> Iterator[SecuredCluster]:
    """The cluster with its users, rules and quotas; ``settings`` beside those of security."""
    authority = Authority(root / "certificates")
    settings = settings | _settings(authority, root / "secrets.properties")
    with InProcessCluster(root / "cluster", settings=settings) as cluster:
        users = UserAdmin(cluster.client)
        for user in USERS:
            for mechanism in SCRAM:
                users.set_password(user, mechanism, PASSWORD, ITERATIONS)
        create_rules(cluster.client, [*own_names(ALICE), *own_names(SLOW), OF_READERS])
        rates = dict.fromkeys(("producer_byte_rate", "consumer_byte_rate"), float(QUOTA_BYTES_PER_S))
        QuotaAdmin(cluster.client).put(QuotaEntity(((USER, SLOW),)), rates)
        _wake_coordinators(cluster)
        yield SecuredCluster(cluster, authority)


def _wake_coordinators(cluster: InProcessCluster) -> None:
    """Have the internal topics made and loaded, which some clients do not wait for."""
    for number in range(20):  # some for each partition
        fetch_committed(GroupAdmin(cluster.client).coordinator(str(number)))
