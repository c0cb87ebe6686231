"""How commands connect: by a file of a client's properties, as Kafka's tools do."""

import argparse
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparklog.cli import connect
from sparklog.cli.command import DONE, FAILED, WRONG_USAGE, build_parser
from sparklog.cli.command_config import VARIABLE, command_config_of
from sparklog.cli.connect import cluster_words
from sparklog.cli.registry import BUILT_IN, load_command
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClusterUnavailable
from sparklog.network.dialing.connection import TLS_REMEDY
from tests.certificates import Authority

Sparklog = Callable[..., Any]
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file of properties."""

    def write(text: str) -> Path:
        path = tmp_path / "client.properties"
        path.write_text(text)
        return path

    return write


def client_by(path: Path) -> ClusterClient:
    config = command_config_of(Namespace(command_config=path))
    return config.client("127.0.0.1:1", retry_timeout_ms=20_000)


def test_properties_of_the_client_have_their_effect(write: Write) -> None:
    path = write(
        "client.id=auditor\nclient.rack=r1\nrequest.timeout.ms=7000\ndefault.api.timeout.ms=9000\n"
        "bootstrap.servers=elsewhere:9092\nsecurity.protocol=PLAINTEXT\n"
    )
    with client_by(path) as client:
        assert (client.client_id, client.client_rack) == ("auditor", "r1")
        assert (client.request_timeout_ms, client.retry_timeout_ms) == (7_000, 9_000)


def test_without_a_file_commands_connect_as_they_always_did() -> None:
    with command_config_of(Namespace()).client("127.0.0.1:1", retry_timeout_ms=20_000) as client:
        assert (client.client_id, client.client_rack) == ("sparklog-cli", "")
        assert (client.request_timeout_ms, client.retry_timeout_ms) == (30_000, 20_000)


def test_values_may_be_references(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_NAME", "auditor")
    with client_by(write("client.id=${env:MY_NAME}\n")) as client:
        assert client.client_id == "auditor"


def test_a_command_takes_the_file_by_option_or_variable_and_the_option_goes_first(
    sparklog: Sparklog, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = sparklog("topics", "list", "--command-config", str(write("client.id=me\n")))
    assert (ran.status, ran.err) == (DONE, "")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "missing"))
    ran = sparklog("topics", "list")
    assert ran.status == WRONG_USAGE
    assert ran.err.startswith(f"sparklog: {VARIABLE}={tmp_path}/missing: No such file or directory; give")
    assert sparklog("topics", "list", "--command-config", str(write("client.id=me\n"))).status == DONE
    monkeypatch.setenv(VARIABLE, "")
    assert sparklog("topics", "list").status == DONE


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("security.protocl=SSL\n", "has a property 'security.protocl'; did you mean security.protocol?"),
        ("bootstrap.server=h:1\n", "has a property 'bootstrap.server'; did you mean bootstrap.servers?"),
        (
            "security.protocol=SASL_SSL\n",
            "security.protocol=SASL_SSL needs sasl.mechanism: sparklog's clients log in by",
        ),
        ("ssl.keystore.key=a\nsecurity.protocol=SSL\n", "ssl.keystore.key is given without"),
        ("request.timeout.ms=soon\n", "request.timeout.ms='soon': must be a number of milliseconds"),
        ("default.api.timeout.ms=0\n", "default.api.timeout.ms='0': must be a number of milliseconds"),
        ("a=1\nnonsense\n", "line 2: 'nonsense' is not of the form name=value"),
    ],
)
def test_what_a_file_has_that_cannot_be_is_wrong_usage_and_names_the_file(
    text: str, complaint: str, sparklog: Sparklog, write: Write
) -> None:
    path = write(text)
    ran = sparklog("topics", "list", "--command-config", str(path))
    assert ran.status == WRONG_USAGE
    assert ran.err.startswith(f"sparklog: --command-config {path}: ")
    assert complaint in ran.err


def test_a_file_that_is_no_text_is_wrong_usage(sparklog: Sparklog, tmp_path: Path) -> None:
    (tmp_path / "keys.p12").write_bytes(b"0\x82\xff\xfe")
    for path, complaint in (
        (tmp_path / "keys.p12", "is no text in UTF-8"),
        (tmp_path, "Is a directory"),
        (tmp_path / "none", "No such file"),
    ):
        ran = sparklog("topics", "list", "--command-config", str(path))
        assert ran.status == WRONG_USAGE
        assert complaint in ran.err


def test_what_has_no_effect_is_told_in_one_line(sparklog: Sparklog, write: Write) -> None:
    path = write("group.id=g\nauto.offset.reset=earliest\nbootstrap.servers=h:1\n")
    ran = sparklog("topics", "list", "--command-config", str(path))
    assert ran.status == DONE
    assert ran.err == (
        f"sparklog: warning: --command-config {path}: no effect here has auto.offset.reset, group.id\n"
    )


def test_encryption_that_is_not_switched_on_is_told(sparklog: Sparklog, write: Write) -> None:
    path = write("ssl.truststore.location=ca.pem\n")
    ran = sparklog("topics", "list", "--command-config", str(path))
    assert ran.status == DONE
    assert "ssl.truststore.location has no effect: connections are in the clear" in ran.err


def test_a_command_connects_over_tls(
    sparklog: Sparklog, fake_over_tls: Any, authority: Authority, write: Write
) -> None:
    fake_over_tls.create_topic("t")
    key_store = authority.issue("admin")
    path = write(
        f"security.protocol=SSL\nssl.truststore.location={authority.file}\nssl.keystore.location={key_store}\n"
    )
    server = ("--bootstrap-server", fake_over_tls.bootstrap_servers, "--command-config", str(path))
    ran = sparklog("produce", "--topic", "t", *server, stdin=b"planted\n", connect=False)
    assert (ran.status, ran.err) == (DONE, "")
    ran = sparklog(
        "consume", "--topic", "t", "--from-beginning", "--max-messages", "1", *server, connect=False
    )
    assert (ran.status, ran.out) == (DONE, "planted\n")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", f"a file, and name it with --command-config or the variable {VARIABLE}"),
        ("client.id=a\n", "--command-config FILE"),
    ],
)
def test_a_command_in_the_clear_at_a_port_with_tls_hears_where_to_ask_for_tls(
    sparklog: Sparklog, write: Write, monkeypatch: pytest.MonkeyPatch, text: str, place: str
) -> None:
    def refused(cluster: ClusterClient, _timeout_ms: int) -> None:
        raise ClusterUnavailable(f"no broker answered (if this is a port with TLS, set {TLS_REMEDY}).")

    monkeypatch.setattr(ClusterClient, "reach", refused)
    file = str(write(text))
    ran = sparklog("topics", "list", *(("--command-config", file) if text else ()))
    assert ran.status == FAILED
    remedy = f"For a port with TLS, write security.protocol=SSL into {place}".replace("FILE", file)
    assert ran.err.endswith(f"{remedy}\n")


@pytest.mark.timeout(30)
def test_refused_tls_ends_a_command_at_once(
    sparklog: Sparklog,
    fake_over_tls: Any,
    authority: Authority,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connect, "REACH_TIMEOUT_MS", 600_000)
    path = write(f"security.protocol=SSL\nssl.truststore.location={authority.file}\n")
    server = ("--bootstrap-server", fake_over_tls.bootstrap_servers, "--command-config", str(path))
    ran = sparklog("topics", "list", *server, connect=False)
    assert ran.status == FAILED
    assert "it asks for a client certificate: set ssl.keystore.location" in ran.err


def test_a_key_that_cannot_be_had_is_wrong_usage_and_no_secret_is_shown(
    sparklog: Sparklog, authority: Authority, write: Write
) -> None:
    for text, complaint in (
        ("ssl.truststore.location=/none/ca.pem", "/none/ca.pem"),
        (f"ssl.keystore.location={authority.file}\nssl.key.password=Sesame", str(authority.file)),
    ):
        path = write(f"security.protocol=SSL\n{text}\nsasl.jaas.config=Sesame\n")
        ran = sparklog("topics", "list", "--command-config", str(path))
        assert ran.status == WRONG_USAGE
        assert ran.err.startswith(f"sparklog: --command-config {path}: ssl.")
        assert complaint in ran.err
        assert "Sesame" not in ran.err


def test_a_remedy_repeats_the_file(tmp_path: Path) -> None:
    given = Namespace(bootstrap_server="h:1", command_config=tmp_path / "my file")
    assert cluster_words(given) == f"--bootstrap-server h:1 --command-config '{tmp_path}/my file'"


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        for nested in action.choices.values() if isinstance(action.choices, dict) else ():
            yield from parsers(nested)


@pytest.mark.parametrize("name", BUILT_IN)
def test_all_that_talk_to_a_cluster_take_the_file(name: str) -> None:
    for parser in parsers(build_parser(load_command(name))):
        options = parser._option_string_actions.keys()
        assert ("--bootstrap-server" in options) == ("--command-config" in options), parser.prog
