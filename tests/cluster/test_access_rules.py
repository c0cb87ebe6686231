"""Two teams on one cluster: what each may do by its rules, and what it sees of the other."""

import json

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from sparklog.cli.main import main
from sparklog.client.access_rules import create_rules, delete_rules, list_rules
from sparklog.client.cluster import ClusterClient
from sparklog.client.records_producer import Producer
from sparklog.client.security.connecting import connector_of
from sparklog.core.controller.commands import acl_commands
from sparklog.core.security.acl import AclOperation as Operation
from sparklog.core.security.acl import ResourceType as ResourceKind
from sparklog.core.security.rules import Pattern, Rule
from sparklog.model.errors import ConfigError, ErrorCode, KafkaError
from sparklog.model.settings.jaas import PLAIN_MODULE
from sparklog.testing import InProcessCluster
from tests.waiting import until

USERS = ("broker", "admin", "team-a", "team-b")
SUPER_USERS = "User:broker;User:admin"


def settings_of(super_users=SUPER_USERS):
    of_users = " ".join(f'user_{user}="${{env:PASSWORD_OF_ALL}}"' for user in USERS)
    return {
        "listeners": "SASL_PLAINTEXT://:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.plain.without.tls": "true",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f'{PLAIN_MODULE} required username=broker password="${{env:PASSWORD_OF_ALL}}" {of_users};'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": super_users,
    }


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PASSWORD_OF_ALL", "secret")
        with InProcessCluster(brokers=2, settings=settings_of()) as cluster:
            yield cluster


def properties_of(user):
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN_MODULE} required username="{user}" password="secret";',
    }


def client_of(cluster, user):
    return ClusterClient(cluster.bootstrap_servers, connector=connector_of(properties_of(user)))


def librdkafka(cluster, user):
    return AdminClient(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": "secret",
        }
    )


@pytest.fixture
def acls(cluster, tmp_path, capsys):
    """``sparklog acls WORDS`` as the administrator; returns the status and what it prints as JSON."""
    config = tmp_path / "admin.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in properties_of("admin").items()))

    def run(*words):
        address = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(config))
        status = main(["acls", *words, "--json", *address])
        return status, json.loads(capsys.readouterr().out)["acls"]

    return run


def test_a_rule_lets_a_team_do_what_it_says_and_hides_the_rest(cluster, acls) -> None:
    for name in ("team-a-orders", "team-b-orders"):
        cluster.create_topic(name, replication_factor=2)
        cluster.produce(name, [name.encode()])
    with client_of(cluster, "team-a") as team_a:
        assert set(team_a.metadata(None).topics) == set()
        status, added = acls(
            "add",
            "--principal",
            "User:team-a",
            "--operation",
            "read,write",
            "--topic",
            "team-a-",
            "--prefixed",
        )
        assert (status, [one["operation"] for one in added]) == (0, ["READ", "WRITE"])
        until(lambda: set(team_a.metadata(None, max_age_ms=0).topics) == {"team-a-orders"}, "the rule")
        with Producer(team_a) as producer:
            producer.send("team-a-orders", b"mine")
            assert len(producer.flush()) == 1
    names = librdkafka(cluster, "team-a").list_topics(timeout=10).topics
    assert set(names) == {"team-a-orders"}


def test_the_command_lists_every_rule_about_a_resource_and_removes_what_it_is_given(acls) -> None:
    acls("add", "--principal", "User:x", "--operation", "describe", "--topic", "listed-", "--prefixed")
    acls("add", "--principal", "User:y", "--operation", "all", "--topic", "listed-topic", "--deny")
    _, about = acls("list", "--topic", "listed-topic")
    assert [(one["principal"], one["pattern_type"], one["permission_type"]) for one in about] == [
        ("User:x", "PREFIXED", "ALLOW"),
        ("User:y", "LITERAL", "DENY"),
    ]
    rule = ("--principal", "User:y", "--operation", "all", "--topic", "listed-topic", "--deny")
    assert acls("remove", *rule)[0] == 0
    assert acls("remove", *rule) == (1, [])
    assert [one["principal"] for one in acls("list", "--principal", "User:y")[1]] == []


def test_librdkafka_creates_lists_and_deletes_rules(cluster) -> None:
    admin = librdkafka(cluster, "admin")
    rule = AclBinding(
        ResourceType.GROUP, "of-librdkafka", ResourcePatternType.LITERAL, "User:team-b", "*",
        AclOperation.READ, AclPermissionType.ALLOW,
    )  # fmt: skip
    for made in admin.create_acls([rule]).values():
        assert made.result(10) is None
    wanted = AclBindingFilter(
        ResourceType.GROUP, "of-librdkafka", ResourcePatternType.ANY, None, None,
        AclOperation.ANY, AclPermissionType.ANY,
    )  # fmt: skip
    assert admin.describe_acls(wanted).result(10) == [rule]
    (deleted,) = [one.result(10) for one in admin.delete_acls([wanted]).values()]
    assert deleted == [rule]
    assert admin.describe_acls(wanted).result(10) == []


def test_who_may_not_describe_or_alter_the_cluster_reads_and_writes_no_rules(cluster) -> None:
    binding = acl_commands.AclBinding(
        Pattern(ResourceKind.topic, "stolen"), Rule("User:team-b", Operation.all)
    )
    with client_of(cluster, "team-b") as team_b:
        for attempt in (
            lambda: list_rules(team_b, acl_commands.AclFilter()),
            lambda: create_rules(team_b, [binding]),
            lambda: delete_rules(team_b, [binding]),
        ):
            with pytest.raises(KafkaError) as refused:
                attempt()
            assert refused.value.code is ErrorCode.cluster_authorization_failed
    with client_of(cluster, "admin") as admin:
        assert list_rules(admin, acl_commands.AclFilter(name="stolen")) == []


def test_a_refused_write_says_why_at_once(cluster) -> None:
    cluster.create_topic("closed-orders")
    with client_of(cluster, "team-b") as team_b, Producer(team_b, timeout_ms=20_000) as producer:
        with pytest.raises(KafkaError) as refused:
            producer.send("closed-orders", b"x")
        assert refused.value.code is ErrorCode.topic_authorization_failed


@pytest.mark.parametrize("super_users", ["", "User:admin"])
def test_brokers_without_their_right_do_not_start_and_name_the_line_that_they_need(
    monkeypatch, super_users
) -> None:
    monkeypatch.setenv("PASSWORD_OF_ALL", "secret")
    cluster = InProcessCluster(brokers=1, settings=settings_of(super_users))
    with pytest.raises(ConfigError, match=r"set super\.users=(User:admin;)?User:broker$"):
        cluster.start()
    cluster.stop()
