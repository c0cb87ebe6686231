"""`sparklog start` over TLS: clients of Kafka, Spark, brokers and controller; new certificates under load."""

import re
import shutil
import subprocess
import threading
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer

from tests.certificates import Authority
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

KCAT = shutil.which("kcat")


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "certificates")


def brokers(authority, name="broker", **more):
    """Options of a start whose only listener speaks TLS."""
    settings = {
        "listeners": "SSL://:0",
        "security.inter.broker.protocol": "SSL",
        **authority.settings(authority.root / f"{name}.pem", **more),
    }
    return ["--brokers", "2", "--port", "0", "-c", *(f"{name}={text}" for name, text in settings.items())]


def librdkafka(servers, authority, name="client"):
    """Properties of librdkafka, which takes key and certificate apart, and from one file too."""
    key_store = str(authority.root / f"{name}.pem")
    return {
        "bootstrap.servers": servers,
        "security.protocol": "ssl",
        "ssl.ca.location": str(authority.file),
        "ssl.certificate.location": key_store,
        "ssl.key.location": key_store,
    }


def kcat(properties, *arguments, stdin=""):
    assert KCAT is not None, "kcat is not installed: sudo apt-get install kcat"
    options = [option for name, text in properties.items() for option in ("-X", f"{name}={text}")]
    done = subprocess.run(
        [KCAT, *options, *arguments], input=stdin, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Load:
    """Records through one producer, each acknowledged by all replicas in sync before the next is sent."""

    def __init__(self, properties, topic):
        self.sent = 0
        self.failures = []
        self._topic = topic
        self._ends = threading.Event()
        self._producer = Producer(
            {
                **properties,
                "acks": "all",
                "retries": 0,
                "error_cb": lambda error: self.failures.append(error.str()),
                "linger.ms": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def wait_for_more(self):
        count = self.sent
        until(lambda: self.sent > count + 5 or self.failures, lambda: f"more than {count} records")

    def end(self):
        self._ends.set()
        self._thread.join()

    def _run(self):
        while not self._ends.is_set():
            self._producer.produce(self._topic, str(self.sent), partition=0, on_delivery=self._delivered)
            assert self._producer.flush(60) == 0

    def _delivered(self, error, _):
        if error is None:
            self.sent += 1
        else:
            self.failures.append(error.str())


@pytest.mark.proof
def test_all_speak_tls_and_certificates_are_replaced_under_load(start, spark, authority, tmp_path):
    authority.issue("broker")
    authority.issue("client")
    cluster = start(tmp_path / "cluster", *brokers(authority, client_auth="required"))
    cluster.wait_ready()
    servers = cluster.cluster()["bootstrap_servers"]
    properties = librdkafka(servers, authority)

    kcat(properties, "-P", "-t", "words", "-X", "acks=all", stdin="a\nb\n")
    assert sorted(kcat(properties, "-C", "-t", "words", "-e", "-q").split()) == ["a", "b"]

    options = {"bootstrap.servers": servers, "kafka.security.protocol": "SSL"}
    options |= {
        f"kafka.{name}": text for name, text in authority.settings(authority.root / "client.pem").items()
    }
    rows = spark.range(100).selectExpr("string(id) value")
    rows.write.format("sparklog").options(**options, topic="rows").mode("append").save()
    read = spark.read.format("sparklog").options(**options, subscribe="rows").load()
    assert sorted(int(row.value) for row in read.selectExpr("string(value) value").collect()) == list(
        range(100)
    )

    load = Load(properties, "load")
    try:
        load.wait_for_more()
        for _ in range(3):
            count = _reloads(cluster)
            authority.issue("broker")
            until(
                lambda count=count: _touched(properties) and _reloads(cluster) >= count + 2,
                "new certificates",
            )
            load.wait_for_more()
        (tmp_path / "certificates/broker.pem").write_text("-----BEGIN PRIVATE KEY-----\nhalf of it")
        until(lambda: _touched(properties) and "until this is mended" in _broker_logs(cluster), "a warning")
        load.wait_for_more()
    finally:
        load.end()
    assert load.failures == []
    values = [int(value) for value in kcat(properties, "-C", "-t", "load", "-e", "-q").split()]
    assert values == list(range(load.sent))

    status, _, err = cluster.stop()
    assert (status, cluster.processes()) == (0, [])
    for secret in ("BEGIN PRIVATE KEY", "half of it"):
        assert secret not in err + _broker_logs(cluster)


def _touched(properties):
    """Open new connections to the brokers: these look whether the files have changed."""
    return "2 brokers" in kcat(properties, "-L", "-t", "load")


def _broker_logs(cluster):
    return "".join(path.read_text() for path in (cluster.root / "logs").glob("broker-*.log"))


def _reloads(cluster):
    return _broker_logs(cluster).count("certificates and keys are read again")


@pytest.mark.parametrize(
    ("hosts", "days", "why"),
    [
        ((), -1, "the certificate of CN=broker,.* has expired on .* UTC; renew it"),
        (("kafka.example.org",), 300, "is for kafka.example.org, and not for 127.0.0.1, which the broker"),
    ],
)
def test_a_start_with_a_certificate_that_clients_would_refuse_ends_at_once(
    start, authority, tmp_path, hosts, days, why
):
    authority.issue("broker", *hosts, not_after=datetime.now(UTC) + timedelta(days=days))
    cluster = start(tmp_path / "cluster", *brokers(authority))
    _, err = cluster.process.communicate(timeout=60)
    assert cluster.process.returncode == 2
    assert len(err.splitlines()) == 1
    assert re.search(why, err)
