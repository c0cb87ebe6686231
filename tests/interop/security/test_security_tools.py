"""Apache Kafka's own tools, release 3.9.1, and kcat on a secured cluster: users, rules and quotas."""

import itertools
import shutil
import subprocess

import pytest

from tests.interop.kafka_jars import java
from tests.interop.security.secured import ADMIN, ALICE, LOGINS, MUTUAL, PASSWORD, java_properties
from tests.waiting import until

pytestmark = [pytest.mark.clients, pytest.mark.integration]

ACLS = "kafka.admin.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
PATIENCE_S = 120
_numbers = itertools.count(1)


@pytest.fixture
def tool(secured, tmp_path):
    """Runs a tool as a user to its end; its output."""

    def run(main, *arguments, user=ADMIN, password=PASSWORD, code=0):
        config = tmp_path / f"{user}.properties"
        properties = java_properties(secured.login(user, password=password))
        text = "".join(f"{name}={value}\n" for name, value in properties.items())
        config.write_text(text, encoding="latin-1")  # as Java reads properties
        line = [*java(), main, "--bootstrap-server", secured.servers(), "--command-config", str(config)]
        done = subprocess.run(
            [*line, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == code, f"{main}: {done.returncode}: {done.stdout} {done.stderr}"
        return done.stdout + done.stderr

    return run


def test_kafka_acls_add_list_and_remove_rules(tool):
    topic = f"tools-{next(_numbers)}"
    rule = ("--allow-principal", "User:dora", "--consumer", "--topic", topic, "--group", topic)
    tool(ACLS, "--add", *rule)
    until(lambda: "operation=READ" in tool(ACLS, "--list", "--topic", topic))
    listed = tool(ACLS, "--list", "--principal", "User:dora")
    assert f"ResourcePattern(resourceType=TOPIC, name={topic}, patternType=LITERAL)" in listed
    assert f"ResourcePattern(resourceType=GROUP, name={topic}, patternType=LITERAL)" in listed
    tool(ACLS, "--remove", "--force", *rule)
    until(lambda: topic not in tool(ACLS, "--list", "--topic", topic).partition("ResourcePattern")[2])


def test_kafka_acls_of_prefixes_and_denials(tool):
    prefix = f"tools-{next(_numbers)}-"
    denial = ("--deny-principal", "User:dora", "--operation", "Write", "--topic", prefix)
    tool(ACLS, "--add", *denial, "--resource-pattern-type", "prefixed", "--deny-host", "10.0.0.1")
    listed = tool(ACLS, "--list", "--topic", f"{prefix}x", "--resource-pattern-type", "match")
    assert f"name={prefix}, patternType=PREFIXED" in listed
    assert "principal=User:dora, host=10.0.0.1, operation=WRITE, permissionType=DENY" in listed


def test_kafka_acls_by_who_may_not(tool):
    rule = ("--allow-principal", "User:alice", "--operation", "All", "--cluster")
    assert "ClusterAuthorizationException" in tool(ACLS, "--add", *rule, user=ALICE, code=1)
    assert "ClusterAuthorizationException" in tool(ACLS, "--list", user=ALICE, code=1)


def test_kafka_configs_give_a_user_a_password_and_take_it_away(tool):
    user = f"dora-{next(_numbers)}"
    tool(CONFIGS, "--alter", "--user", user, "--add-config", "SCRAM-SHA-512=[iterations=4096,password=first]")
    until(lambda: "SCRAM-SHA-512=iterations=4096" in tool(CONFIGS, "--describe", "--user", user))
    assert "ClusterAuthorizationException" in tool(ACLS, "--list", user=user, password="first", code=1)
    tool(CONFIGS, "--alter", "--user", user, "--delete-config", "SCRAM-SHA-512")
    until(lambda: "SCRAM" not in tool(CONFIGS, "--describe", "--user", user))
    assert "Authentication failed" in tool(ACLS, "--list", user=user, password="first", code=1)


def test_kafka_configs_set_quotas_of_users_and_of_their_clients(tool):
    user = f"dora-{next(_numbers)}"
    of_user = ("--entity-type", "users", "--entity-name", user)
    of_client = (*of_user, "--entity-type", "clients", "--entity-default")
    tool(CONFIGS, "--alter", *of_user, "--add-config", "producer_byte_rate=1024,request_percentage=50.5")
    tool(CONFIGS, "--alter", *of_client, "--add-config", "consumer_byte_rate=2048")
    assert "producer_byte_rate=1024" in tool(CONFIGS, "--describe", *of_user)
    assert "request_percentage=50.5" in tool(CONFIGS, "--describe", *of_user)
    assert "consumer_byte_rate=2048" in tool(CONFIGS, "--describe", *of_client)
    refused = tool(CONFIGS, "--alter", *of_user, "--add-config", "producer_byte_rate=1", user=ALICE, code=1)
    assert "ClusterAuthorizationException" in refused


@pytest.mark.parametrize("how", ["certificate", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kcat_writes_and_reads(secured, how):
    program = shutil.which("kcat")
    if program is None:
        pytest.skip("kcat is not installed: sudo apt-get install kcat")
    security = secured.certificate(ALICE) if how == "certificate" else secured.login(ALICE, how)
    options = {
        "security.protocol": security["protocol"],
        "ssl.ca.location": security["ca"],
        "ssl.certificate.location": security.get("certificate"),
        "ssl.key.location": security.get("certificate"),
        "sasl.mechanism": security.get("mechanism"),
        "sasl.username": security.get("user"),
        "sasl.password": security.get("password"),
    }
    words = [
        word for name, value in options.items() if value is not None for word in ("-X", f"{name}={value}")
    ]
    servers = secured.servers(MUTUAL if how == "certificate" else LOGINS)
    topic = f"{ALICE}-kcat-{next(_numbers)}"
    secured.cluster.create_topic(topic, replication_factor=3)

    def kcat(*arguments, stdin=""):
        line = [program, "-b", servers, *words, *arguments]
        done = subprocess.run(line, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    kcat("-P", "-t", topic, stdin="a\nb\n")
    assert kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q").splitlines() == ["a", "b"]
