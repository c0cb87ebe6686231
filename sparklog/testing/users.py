"""Users of a test's cluster that is secured, as ``sparklog security init`` secures one."""

import secrets
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from sparklog.authority.folder_texts import ADMIN_PROPERTIES_FILE, AUTHORITY_FILE, SERVER_FILE
from sparklog.broker.life.server import BrokerServer
from sparklog.client.access_rules import create_rules
from sparklog.client.cluster import ClusterClient
from sparklog.client.security.connecting import connector_of
from sparklog.client.security.user_admin import UserAdmin
from sparklog.core.controller.commands.acl_commands import AclBinding
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.authorizer import Authorizer
from sparklog.core.security.requester import Requester
from sparklog.core.security.rules import Pattern, PatternType, Permission, Rule
from sparklog.model.errors import ConfigError
from sparklog.model.settings.jaas import SCRAM_MODULE
from sparklog.model.settings.settings_text import parse_properties
from sparklog.testing.topics_and_records import TopicsAndRecords, wait_until

FOLDER: Final = "security"
MECHANISM: Final = "SCRAM-SHA-512"
ITERATIONS: Final = 4_096
"""The fewest that Kafka takes: passwords of tests are random, and guard nothing."""

_OWN_HOST: Final = "127.0.0.1"


class ClusterUser(TopicsAndRecords):
    """A user who logs in over TLS, and may do what rules allow; ``cluster.as_user(name)`` makes it."""

    def __init__(
        self, name: str, properties: Mapping[str, str], servers: str, broker_count: int, client: ClusterClient
    ) -> None:
        self.name = name
        self.properties = dict(properties)
        """A client's, with Kafka's names; for Java's clients and ``--command-config``."""
        self._servers = servers
        self._broker_count = broker_count
        self._client = client

    @property
    def options(self) -> dict[str, str]:
        """Spark's: ``spark.read.format("sparklog").options(**alice.options)``."""
        named = {f"kafka.{name}": value for name, value in self.properties.items()}
        return {"kafka.bootstrap.servers": self._servers, **named}

    @property
    def client(self) -> ClusterClient:
        return self._client

    @property
    def broker_count(self) -> int:
        return self._broker_count


class Security:
    """The folder of a secured cluster, its users and their rights."""

    def __init__(self, root: Path) -> None:
        self.folder = root / FOLDER
        if not self.folder.exists():
            # start time: cryptography is heavy, and other clusters do without it
            from sparklog.authority.folder import make_folder
            from sparklog.authority.issuing import utc_now

            make_folder(self.folder, [_OWN_HOST], utc_now())
        self._users: dict[str, ClusterUser] = {}

    @property
    def broker_settings(self) -> Mapping[str, str]:
        return self._read(SERVER_FILE)

    @property
    def admin_properties(self) -> Mapping[str, str]:
        return self._read(ADMIN_PROPERTIES_FILE)

    def as_user(
        self,
        name: str,
        admin: ClusterClient,
        brokers: Iterable[BrokerServer],
        servers: str,
        closing: ExitStack,
    ) -> ClusterUser:
        """The user ``name``, made at the first call. ``closing`` closes the user's client."""
        if name not in self._users:
            properties = self._new_user(name, admin, list(brokers))
            client = ClusterClient(
                servers, client_id=f"sparklog-testing-{name}", connector=connector_of(properties)
            )
            closing.callback(client.close)
            self._users[name] = ClusterUser(name, properties, servers, len(servers.split(",")), client)
        return self._users[name]

    def forget_users(self) -> None:
        """Their clients are closed. ``as_user`` gives each another password."""
        self._users.clear()

    def _new_user(self, name: str, admin: ClusterClient, brokers: list[BrokerServer]) -> Mapping[str, str]:
        password = secrets.token_urlsafe(24)
        UserAdmin(admin).set_password(name, MECHANISM, password, ITERATIONS)
        wait_until(
            lambda: all(_knows(one, name) for one in brokers),
            lambda: f"not every broker knows user {name!r}",
        )
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": f'{SCRAM_MODULE} required username="{quoted}" password="{password}";',
            "ssl.truststore.location": str(self.folder / AUTHORITY_FILE),
            "ssl.truststore.type": "PEM",
        }

    def _read(self, name: str) -> Mapping[str, str]:
        return parse_properties((self.folder / name).read_text(encoding="utf-8"))


def allow(
    admin: ClusterClient,
    brokers: Iterable[BrokerServer],
    principal: str,
    operations: Iterable[str],
    pattern: Pattern,
) -> None:
    """Add rules, and wait until they bind all ``brokers``."""
    wanted = [_operation(one) for one in operations]
    create_rules(admin, [AclBinding(pattern, Rule(principal, one, Permission.allow)) for one in wanted])
    requester = Requester(principal, _OWN_HOST)
    wait_until(
        lambda: all(
            _authorizer(broker).allows(requester, one, pattern.resource, pattern.name)
            for broker in brokers
            for one in wanted
        ),
        lambda: f"the rules for {principal} are not known everywhere",
    )


def pattern_of(
    topic: str | None, group: str | None, transactional_id: str | None, *, prefixed: bool
) -> Pattern:
    """ConfigError unless one of the three is named."""
    named = {
        ResourceType.topic: topic,
        ResourceType.group: group,
        ResourceType.transactional_id: transactional_id,
    }
    found = [(kind, name) for kind, name in named.items() if name is not None]
    if len(found) != 1:
        raise ConfigError("a rule is about one thing: give topic=, group= or transactional_id=")
    kind = PatternType.prefixed if prefixed else PatternType.literal
    return Pattern(*found[0], kind)


def _operation(name: str) -> AclOperation:
    try:
        return AclOperation[name.lower()]
    except KeyError:
        known = ", ".join(one.name for one in AclOperation)
        raise ConfigError(f"{name!r} is no operation; there are {known}") from None


def _authorizer(broker: BrokerServer) -> Authorizer:
    control = broker.body.context.access_control
    assert control is not None, "a secured cluster has an authorizer"
    return control.authorizer


def _knows(broker: BrokerServer, user: str) -> bool:
    logins = broker.process.logins
    assert logins is not None, "a secured cluster has logins"
    return logins.users.has(user, MECHANISM)
