"""Options have names without regard to case; what is misspelt or cannot be honoured is refused."""

import pickle

import pytest

from sparklog.model.errors import ConfigError
from sparklog_datasource.options.option_parsing import ConnectionOptions, Options, is_of_new_table

KNOWN = ("startingOffsets", "failOnDataLoss", "maxTriggerDelay", "minPartitions")
SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def options(given: dict[str, str]) -> Options:
    return Options(given, KNOWN, "read")


def test_names_are_found_without_regard_to_case() -> None:
    assert options({"STARTINGoffsets": "earliest"}).text("startingOffsets") == "earliest"


@pytest.mark.parametrize("name", ["kafka.bootstrap.servers", "bootstrap.servers", "Kafka.Bootstrap.Servers"])
def test_bootstrap_servers_have_a_long_and_a_short_name(name: str) -> None:
    connection = options({name: "a:1,b:2"}).connection(retry_option="max.block.ms")
    assert connection.bootstrap_servers == "a:1,b:2"


def test_missing_bootstrap_servers_are_told_by_name() -> None:
    with pytest.raises(ConfigError, match=r"'kafka.bootstrap.servers' .* must be specified"):
        options({}).connection(retry_option="max.block.ms")


def test_misspelt_bootstrap_servers_are_told_before_anything_is_missed() -> None:
    with pytest.raises(
        ConfigError, match=r"'kafka.boostrap.servers'.*did you mean kafka.bootstrap.servers\?"
    ):
        options({"kafka.boostrap.servers": "a:1"})


def test_two_different_bootstrap_servers_are_refused() -> None:
    given = {"kafka.bootstrap.servers": "a:1", "bootstrap.servers": "b:2"}
    with pytest.raises(ConfigError, match="differ"):
        options(given).connection(retry_option="max.block.ms")


def test_a_misspelt_option_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"unknown option 'startingofset'.*did you mean startingOffsets?"):
        options({"startingOfset": "earliest"})


def test_an_option_like_no_other_is_refused_with_a_hint_at_the_prefix() -> None:
    with pytest.raises(ConfigError, match=r"unknown option 'zzz'.*begin with 'kafka\.'"):
        options({"zzz": "1"})


def test_options_of_kafkas_clients_are_accepted_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    assert options({"kafka.linger.ms": " 5 ", "kafka.FETCH.min.bytes": "1"}).client("linger.ms") == "5"
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("kafka.isolaton.level", "kafka.isolation.level"),
        ("kafka.ack", "kafka.acks"),
        ("kafka.compresion.type", "kafka.compression.type"),
        ("kafka.max.blocks.ms", "kafka.max.block.ms"),
    ],
)
def test_a_misspelt_option_of_a_kafka_client_is_refused_with_the_right_one(given: str, meant: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"unknown option '{given}' for a sparklog read; did you mean {meant}"
    ):
        options({given: "x"})


def test_an_option_that_kafkas_clients_do_not_have_either_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for _ in range(2):
        assert options({"kafka.my.plugin.setting": " x "}).client("my.plugin.setting") == "x"
    assert caplog.messages == [
        "option kafka.my.plugin.setting has no effect: neither sparklog nor Kafka's clients have it"
    ]


def test_a_new_table_is_told_from_a_read_and_may_have_no_options() -> None:
    assert not is_of_new_table({"subscribe": "t"})
    assert is_of_new_table({"owner": "me", "Provider": "sparklog", "my.property": "1"})
    with pytest.raises(ConfigError, match=r"cannot have options.*CREATE TEMPORARY VIEW.*WITH \(\.\.\.\)"):
        is_of_new_table({"provider": "sparklog", "subscribe": "t", "option.subscribe": "t"})


def test_a_table_whose_options_spark_kept_is_told_of_views() -> None:
    with pytest.raises(ConfigError, match=r"no option arrived.*to no Python source: use a temporary view"):
        options({})


def test_what_spark_itself_hands_on_is_accepted() -> None:
    options({"checkpointLocation": "/tmp/c", "queryName": "q", "__internal": "1"})


@pytest.mark.parametrize(
    "name",
    ["auto.offset.reset", "enable.auto.commit", "interceptor.classes", "key.deserializer",
     "value.serializer", "transactional.id", "partitioner.class"],
)  # fmt: skip
def test_client_options_that_would_change_the_meaning_are_refused_with_a_remedy(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"'kafka\.{name}' is not supported: \w+"):
        options({f"kafka.{name}": "x"})


def test_javas_own_default_partitioner_is_accepted() -> None:
    options({"kafka.partitioner.class": "org.apache.kafka.clients.producer.internals.DefaultPartitioner"})


TLS = {
    "kafka.security.protocol": "SSL",
    "kafka.ssl.truststore.location": "/etc/ca.pem",
    "kafka.ssl.key.password": "Sesame",
}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"security.protocol": "SASL_SSL"},
            r"^option kafka\.security\.protocol=SASL_SSL needs sasl\.mechanism: .*choose one",
        ),
        ({"security.protocol": "TLS"}, r"^option kafka\.security\.protocol='TLS' is no security protocol"),
        ({"ssl.client.auth": "none"}, r"^option kafka\.ssl\.client\.auth: no client of Kafka has a property"),
        (
            {"security.protocol": "SSL", "ssl.keystore.key": "k"},
            r"^option kafka\.ssl\.keystore\.key is",
        ),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "SSLv3"}, r"^option kafka\.ssl\.enabled\.pro"),
    ],
)
def test_safety_that_cannot_be_kept_is_refused_rather_than_left_out(
    given: dict[str, str], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        options({f"kafka.{name}": text for name, text in given.items()})


def test_connections_are_in_the_clear_by_default_and_by_word() -> None:
    assert options(SERVERS).connection(retry_option="max.block.ms").security == ()
    given = options({**SERVERS, "kafka.security.protocol": "plaintext"})
    assert given.connection(retry_option="max.block.ms").security == (("security.protocol", "plaintext"),)


def test_what_says_how_to_connect_travels_as_it_was_given_and_is_not_shown() -> None:
    given = {**TLS, "kafka.ssl.keystore.location": "${env:KEYS}/mine.p12"}
    connection = options({**SERVERS, **given}).connection(retry_option="max.block.ms")
    assert {f"kafka.{name}": text for name, text in connection.security} == given
    assert pickle.loads(pickle.dumps(connection)) == connection
    assert "Sesame" not in repr(connection)


def test_other_credentials_are_another_connection() -> None:
    def by(password: str) -> ConnectionOptions:
        given = {**SERVERS, **TLS, "kafka.ssl.key.password": password}
        return options(given).connection(retry_option="max.block.ms")

    assert by("a") == by("a")
    assert by("a") != by("b")


def test_encryption_that_is_not_switched_on_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    options({"kafka.ssl.truststore.location": "/etc/no-protocol.pem"})
    assert (
        "options kafka.*: ssl.truststore.location has no effect: connections are in the clear" in caplog.text
    )


def test_values_of_kafkas_options_may_be_references(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVERS", "h:9092")
    monkeypatch.setenv("ME", "auditor")
    given = options({"kafka.bootstrap.servers": "${env:SERVERS}", "kafka.client.id": "${env:ME}"})
    connection = given.connection(retry_option="max.block.ms")
    assert (connection.bootstrap_servers, connection.client_id) == ("h:9092", "auditor")


@pytest.mark.parametrize(("text", "value"), [("true", True), (" FALSE ", False)])
def test_booleans_are_read_in_any_case(text: str, value: bool) -> None:
    assert options({"failOnDataLoss": text}).boolean("failOnDataLoss", not value) is value


def test_a_boolean_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="failOnDataLoss='yes': must be true or false"):
        options({"failOnDataLoss": "yes"}).boolean("failOnDataLoss", True)


@pytest.mark.parametrize(("text", "message"), [("x", "whole number"), ("0", "must be positive")])
def test_numbers_are_checked(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"minPartitions=.*{message}"):
        options({"minPartitions": text}).integer("minPartitions", minimum=1)


def test_a_number_beyond_a_long_is_refused() -> None:
    with pytest.raises(ConfigError, match="between 1 and 9223372036854775807"):
        options({"minPartitions": str(2**63)}).integer("minPartitions", minimum=1)


@pytest.mark.parametrize(
    ("text", "ms"), [("250", 250), ("500ms", 500), ("30s", 30_000), ("15m", 900_000), ("1 h", 3_600_000)]
)
def test_durations_are_read_as_spark_writes_them(text: str, ms: int) -> None:
    assert options({"maxTriggerDelay": text}).duration_ms("maxTriggerDelay", 1) == ms


def test_a_duration_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="maxTriggerDelay='soon': must be a duration"):
        options({"maxTriggerDelay": "soon"}).duration_ms("maxTriggerDelay", 1)


def test_equal_connections_are_equal_so_that_they_can_share_a_client() -> None:
    first = options(SERVERS).connection(retry_option="max.block.ms")
    assert first == options(SERVERS).connection(retry_option="max.block.ms")


@pytest.mark.parametrize(
    ("text", "count"),
    [("70000", 70_000), ("64k", 65_536), ("64m", 67_108_864), (" 1 GB ", 2**30)],
)
def test_sizes_are_read_as_spark_writes_them(text: str, count: int) -> None:
    assert options({"minPartitions": text}).byte_count("minPartitions", minimum=65_536) == count


@pytest.mark.parametrize("text", ["", "m", "64x", "-1m", "1.5m"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="must be a size such as 512k, 64m or 1g"):
        options({"minPartitions": text}).byte_count("minPartitions", minimum=1)


@pytest.mark.parametrize("text", ["1k", "9999999999999999999p"])
def test_a_size_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="must be between 65536 and"):
        options({"minPartitions": text}).byte_count("minPartitions", minimum=65_536)
