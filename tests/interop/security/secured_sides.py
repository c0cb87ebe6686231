"""A broker of ours and one of Apache Kafka's that ask for logins, with the same users, rules and topics."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sparklog.core.security.login.scram import SCRAM_MECHANISMS
from sparklog.model.settings.jaas import PLAIN_MODULE
from sparklog.model.zookeeper import ZooKeeper
from sparklog.testing import InProcessCluster
from sparklog.zookeeper.kazoo_adapter import SESSION_TIMEOUT_MS
from sparklog.zookeeper.kazoo_admin import KazooAdmin
from tests.closed_files import write_closed
from tests.interop.differential.sides import OURS, SETTINGS, THEIRS
from tests.interop.differential.talk import Address
from tests.interop.security.personas import ADMIN, PASSWORD, USERS, all_rules
from tests.interop.security.secured_talk import SecuredTalk
from tests.interop.targets import Kafka

TOPIC: Final = "a-topic"
GROUP: Final = "a-group"
ID: Final = "an-id"
SCRAM_USER: Final = "carol"
ITERATIONS: Final = 4_096
SALT: Final = b"salt of the dialogues"
FILES: Final = "org.apache.kafka.common.config.provider.FileConfigProvider"
PATIENCE_S: Final = 60.0


def _settings(root: Path) -> dict[str, str]:
    """For both: the listener keeps its name, and asks for logins. Passwords stand in a file.

    What brokers of Kafka need to read that file is nothing to ours, which read such references anyway.
    """
    secrets = root / "secrets.properties"
    write_closed(secrets, f"password={PASSWORD}\n")
    reference = f"${{file:{secrets}:password}}"
    of_all = " ".join(f'user_{user}="{reference}"' for user in USERS)
    return {
        **SETTINGS,
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *SCRAM_MECHANISMS)),
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            f'{PLAIN_MODULE} required username="{ADMIN}" password="{reference}" {of_all};'
        ),
        "connection.failed.authentication.delay.ms": "10",
        "connections.max.reauth.ms": "3600000",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": f"User:{ADMIN}",
        "quota.window.num": "2",
        "quota.window.size.seconds": "1",
        "controller.quota.window.num": "2",
        "controller.quota.window.size.seconds": "1",
    }


@dataclass(frozen=True)
class SecuredSides:
    """By the names of the systems: the addresses of the two brokers, and sessions with their ZooKeepers."""

    addresses: Mapping[str, Address]
    zookeepers: Mapping[str, ZooKeeper]


@contextmanager
def secured_sides(root: Path) -> Iterator[SecuredSides]:
    settings = _settings(root)
    of_kafka = {
        "zookeeper.session.timeout.ms": "18000",
        "config.providers": "file",
        "config.providers.file.class": FILES,
        "listener.name.plaintext.scram-sha-256.sasl.jaas.config": SCRAM_JAAS,
        "listener.name.plaintext.scram-sha-512.sasl.jaas.config": SCRAM_JAAS,
        "inter.broker.listener.name": "PLAINTEXT",
    }
    of_ours = {"inter.broker.listener.name": "PLAINTEXT", "sasl.plain.without.tls": "true"}
    kafka = Kafka({**settings, **of_kafka}, brokers=1)
    kafka.start()
    try:
        kafka.wait_ready()
        with InProcessCluster(root / "ours", brokers=1, settings={**settings, **of_ours}) as cluster:
            node = cluster.brokers[1].node
            host, port = kafka.bootstrap.rsplit(":", 1)
            sides = {OURS: (node.host, node.port), THEIRS: (host, int(port))}
            for address in sides.values():
                _prepare(address)
            theirs = KazooAdmin(kafka.zookeeper, SESSION_TIMEOUT_MS)
            with cluster._memory.client() as ours, theirs:
                theirs.start(SESSION_TIMEOUT_MS)
                yield SecuredSides(sides, {OURS: ours, THEIRS: theirs})
    finally:
        kafka.stop()


SCRAM_JAAS: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def _prepare(address: Address) -> None:
    """A topic with a record, a group with an offset, a transactional id, a user of SCRAM, and all rules."""
    with SecuredTalk(address) as talk:
        talk.create_rules(*all_rules())
        new_topic(talk, TOPIC)
        coordinator = {"by": ADMIN, "version": 1}
        for key, kind in ((GROUP, 0), (ID, 1)):
            talk.until("FindCoordinator", _is_good, key=key, key_type=kind, **coordinator)
        talk.until(
            "InitProducerId",
            _is_good,
            by=ADMIN,
            transactional_id=ID,
            transaction_timeout_ms=60_000,
            version=1,
        )
        offsets = {"name": TOPIC, "partitions": [{"partition_index": 0, "committed_offset": 0}]}
        talk.until(
            "OffsetCommit",
            lambda answer: answer["topics"][0]["partitions"][0]["error_code"] == 0,
            by=ADMIN,
            group_id=GROUP,
            topics=[offsets],
        )
        set_password(talk, SCRAM_USER)
        talk.bound()


def _is_good(answer: dict[str, int]) -> bool:
    return answer["error_code"] == 0


def set_password(talk: SecuredTalk, user: str, password: str = PASSWORD) -> None:
    """Let a user log in by SCRAM; returns when the broker lets it in."""
    entries = [
        {
            "name": user,
            "mechanism": mechanism.number,
            "iterations": ITERATIONS,
            "salt": SALT,
            "salted_password": mechanism.salted(password.encode(), SALT, ITERATIONS),
        }
        for mechanism in SCRAM_MECHANISMS.values()
    ]
    talk.ask("AlterUserScramCredentials", by=ADMIN, upsertions=entries)
    numbers = iter(range(1_000))
    while True:
        answer = talk.scram(user, password, by=f"? {user} {next(numbers)}")
        if isinstance(answer, dict) and answer["error_code"] == 0:
            return


def new_topic(talk: SecuredTalk, name: str, partitions: int = 1) -> bytes:
    """A topic whose leaders are there; its id."""
    wanted = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    answer = talk.until(
        "CreateTopics",
        lambda answer: answer["topics"][0]["error_code"] in (0, 36),
        by=ADMIN,
        topics=[wanted],
        timeout_ms=30_000,
    )
    parts = [{"partition_index": number, "timestamp": -1} for number in range(partitions)]
    talk.until(
        "ListOffsets",
        lambda answer: all(
            part["error_code"] == 0 for topic in answer["topics"] for part in topic["partitions"]
        ),
        by=ADMIN,
        topics=[{"name": name, "partitions": parts}],
    )
    topic_id = answer["topics"][0]["topic_id"]
    assert isinstance(topic_id, bytes)
    return topic_id
