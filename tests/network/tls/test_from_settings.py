"""Both sides shake hands as their settings say; the name in a client's certificate becomes its principal."""

import re
import ssl
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from cryptography.x509.oid import ExtendedKeyUsageOID

from sparklog.core.security.requester import PRINCIPAL_BYTES_MAX
from sparklog.model.errors import ConfigError
from sparklog.model.settings.principal_rules import PrincipalRules
from sparklog.model.settings.tls_settings import TlsSettings, tls_settings_of_listener
from sparklog.network.tls.from_settings import client_side, server_side
from sparklog.network.tls.sides import TlsClient, TlsServer
from sparklog.network.tls.trial import try_handshake, words_of
from tests.network.tls.certificates import (
    AUTHORITY,
    OTHER_AUTHORITY,
    PASSWORD,
    TOMORROW,
    YESTERDAY,
    encrypted_pem_of,
    issued,
    of_client,
    of_listener,
    pem_of,
    pkcs12_of,
    self_signed,
    written,
)

ECDHE = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"


@pytest.fixture
def keys(tmp_path: Path) -> str:
    return written(tmp_path, "keys.pem", pem_of(issued()))


@pytest.fixture
def trust(tmp_path: Path) -> str:
    return written(tmp_path, "trust.pem", AUTHORITY.cert_pem.bytes())


def refusal(server: TlsServer, client: TlsClient, host: str = "localhost") -> str:
    """Why the two do not get together; empty if they do."""
    try:
        try_handshake(server.context(), client.context(), host)
    except ssl.SSLError as error:
        return words_of(error)
    return ""


def test_a_client_that_trusts_the_authority_gets_in_by_each_name_of_the_certificate(
    keys: str, trust: str
) -> None:
    server: TlsServer = server_side(of_listener(keys))
    client: TlsClient = client_side(of_client(truststore_location=trust))
    assert client.checks_host_names
    assert [refusal(server, client, host) for host in ("localhost", "127.0.0.1")] == ["", ""]
    assert "Hostname mismatch" in refusal(server, client, "elsewhere")
    assert "IP address mismatch" in refusal(server, client, "127.0.0.2")


def test_a_client_that_does_not_compare_names_takes_any_host_but_no_other_authority(
    keys: str, trust: str
) -> None:
    server = server_side(of_listener(keys))
    open_client = client_side(of_client(truststore_location=trust, endpoint_identification_algorithm=""))
    assert not open_client.checks_host_names
    assert refusal(server, open_client, "elsewhere") == ""
    stranger = client_side(of_client(truststore_certificates=OTHER_AUTHORITY.cert_pem.bytes().decode()))
    assert "unable to get local issuer certificate" in refusal(server, stranger)
    assert "unable to get local issuer certificate" in refusal(server, client_side(of_client()))


def test_a_certificate_that_is_trusted_itself_needs_no_authority_as_in_java(
    tmp_path: Path, keys: str
) -> None:
    own = issued()
    server = server_side(of_listener(written(tmp_path, "own.pem", pem_of(own))))
    client = client_side(of_client(truststore_certificates=own.cert_chain_pems[0].bytes().decode()))
    assert refusal(server, client) == ""
    assert refusal(server_side(of_listener(keys)), client) != ""


@pytest.mark.parametrize(
    ("client_auth", "shows", "problem"),
    [
        ("none", "", ""),
        ("none", "own", ""),
        ("requested", "", ""),
        ("requested", "own", ""),
        ("requested", "foreign", "unable to get local issuer certificate"),
        ("required", "", "peer did not return a certificate"),
        ("required", "own", ""),
        ("required", "foreign", "unable to get local issuer certificate"),
    ],
)
@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3", "TLSv1.2,TLSv1.3"])
def test_a_listener_wants_certificates_as_it_is_set(
    tmp_path: Path, keys: str, trust: str, client_auth: str, shows: str, problem: str, versions: str
) -> None:
    authority = {"own": AUTHORITY, "foreign": OTHER_AUTHORITY}.get(shows)
    shown = {}
    if authority is not None:
        leaf = pem_of(issued("client", authority=authority))
        shown = {"keystore_location": written(tmp_path, "client.pem", leaf)}
    listener = of_listener(
        keys, client_auth=client_auth, truststore_location=trust, enabled_protocols=versions
    )
    client = client_side(of_client(truststore_location=trust, enabled_protocols=versions, **shown))
    assert problem in refusal(server_side(listener), client)
    assert bool(problem) == bool(refusal(server_side(listener), client))


@pytest.mark.parametrize(
    ("of_server", "of_client_", "problem"),
    [
        ("TLSv1.2", "TLSv1.2,TLSv1.3", ""),
        ("TLSv1.2,TLSv1.3", "TLSv1.3", ""),
        ("TLSv1.3", "TLSv1.2", "unsupported protocol"),
        ("TLSv1.2", "TLSv1.3", "unsupported protocol"),
    ],
)
def test_versions_are_those_that_both_have(
    keys: str, trust: str, of_server: str, of_client_: str, problem: str
) -> None:
    server = server_side(of_listener(keys, enabled_protocols=of_server))
    client = client_side(of_client(truststore_location=trust, enabled_protocols=of_client_))
    assert problem in refusal(server, client)
    assert bool(problem) == bool(refusal(server, client))


def test_cipher_suites_are_those_of_the_list_alone(keys: str, trust: str) -> None:
    server = server_side(of_listener(keys, cipher_suites=ECDHE))
    assert server.context().maximum_version is ssl.TLSVersion.TLSv1_2
    same = client_side(of_client(truststore_location=trust, cipher_suites=ECDHE))
    assert refusal(server, same) == ""
    other = ECDHE.replace("256_GCM_SHA384", "128_GCM_SHA256")
    assert refusal(server, client_side(of_client(truststore_location=trust, cipher_suites=other))) != ""


def test_a_listener_whose_suites_do_not_fit_its_key_does_not_start(keys: str) -> None:
    with pytest.raises(ConfigError, match=r"keys\.pem: no client accepts it: no shared cipher"):
        server_side(of_listener(keys, cipher_suites=ECDHE.replace("ECDSA", "RSA")))


def test_renegotiation_and_compression_are_refused(keys: str, trust: str) -> None:
    for context in (server_side(of_listener(keys)).context(), client_side(of_client()).context()):
        assert context.options & ssl.OP_NO_RENEGOTIATION
        assert context.options & ssl.OP_NO_COMPRESSION
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("content", "more", "problem"),
    [
        (
            pem_of(issued(not_after=YESTERDAY)),
            {},
            f"has expired on {YESTERDAY:%Y-%m-%d %H:%M:%S} UTC; renew it",
        ),
        (
            pem_of(issued(not_before=TOMORROW)),
            {},
            f"is not valid before {TOMORROW:%Y-%m-%d %H:%M:%S} UTC; wait, ",
        ),
        (
            self_signed(ExtendedKeyUsageOID.CLIENT_AUTH),
            {},
            "no client accepts it: unsuitable certificate purpose",
        ),
        (
            issued().private_key_pem.bytes() + issued().cert_chain_pems[0].bytes(),
            {},
            "the private key is not that",
        ),
        (
            pem_of(issued()),
            {"truststore_location": "/nowhere", "client_auth": "required"},
            "ssl.truststore.location",
        ),
    ],
    ids=["expired", "not yet valid", "for clients alone", "of another key", "no trust store"],
)
def test_a_listener_whose_stores_do_not_work_does_not_start(
    tmp_path: Path, content: bytes, more: dict[str, str], problem: str
) -> None:
    path = written(tmp_path, "keys.pem", content)
    with pytest.raises(ConfigError) as refused:
        server_side(of_listener(path, **more))
    assert problem in str(refused.value)


def test_a_client_with_an_expired_certificate_says_so_before_it_dials(tmp_path: Path) -> None:
    path = written(tmp_path, "client.pem", pem_of(issued(not_after=YESTERDAY)))
    with pytest.raises(ConfigError, match=r"client\.pem: the certificate of .* has expired on "):
        client_side(of_client(keystore_location=path))


def test_keys_that_must_be_opened_serve_and_their_text_is_left_in_no_file(
    tmp_path: Path, trust: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", PASSWORD)
    client = client_side(of_client(truststore_location=trust))
    leaf = issued()
    encrypted = of_listener(written(tmp_path, "e", encrypted_pem_of(leaf)), key_password="${env:PLANTED}")
    assert refusal(server_side(encrypted), client) == ""
    pkcs12 = of_listener(written(tmp_path, "p", pkcs12_of(leaf)), keystore_password="${env:PLANTED}")
    assert refusal(server_side(pkcs12), client) == ""


def test_where_memory_has_no_files_a_key_is_in_one_of_ours_alone_and_shortly(
    tmp_path: Path, keys: str, trust: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.delattr("os.memfd_create")
    server = server_side(of_listener(keys))
    assert refusal(server, client_side(of_client(truststore_location=trust))) == ""
    assert list(folder.iterdir()) == []


def principal(leaf: trustme.LeafCert, rules: str = "DEFAULT") -> str:
    with_rules = replace(LISTENER, principal_rules=PrincipalRules.parse(rules))
    return server_side(with_rules).principal_of(
        ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())
    )


def _inline(leaf: trustme.LeafCert) -> TlsSettings:
    return tls_settings_of_listener(
        {
            "ssl.keystore.key": leaf.private_key_pem.bytes().decode(),
            "ssl.keystore.certificate.chain": leaf.cert_chain_pems[0].bytes().decode(),
        },
        "SSL",
    )


LISTENER = _inline(issued())


def of_user(name: str) -> trustme.LeafCert:
    return AUTHORITY.issue_cert(
        "h", common_name=name, organization_name="Example", organization_unit_name="it"
    )


def test_a_certificates_name_is_the_principal_and_rules_shorten_it() -> None:
    assert principal(of_user("alice")) == "User:CN=alice,OU=it,O=Example"
    assert principal(of_user("Alice"), "RULE:^CN=([^,]*),.*$/$1/L,DEFAULT") == "User:alice"


def test_a_client_without_certificate_is_anonymous() -> None:
    assert server_side(LISTENER).principal_of(None) == "User:ANONYMOUS"


@pytest.mark.parametrize(
    ("name", "rules", "problem"),
    [
        (
            "alice",
            "RULE:^O=.*/x/",
            "no rule of ssl.principal.mapping.rules=RULE:^O=.*/x/ fits the name CN=alice",
        ),
        ("alice", "RULE:.*//", "the certificate has no name of an owner"),
        ("a\nb", "DEFAULT", "has characters that cannot be printed"),
        ("x" * 64, f"RULE:^CN=(.*),OU.*$/{'$1' * 17}/", f"bytes, at most {PRINCIPAL_BYTES_MAX} are allowed"),
    ],
)
def test_a_name_that_no_principal_may_have_is_refused(name: str, rules: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        principal(of_user(name), rules)


def test_a_client_with_pem_does_without_the_library_for_pkcs12(trust: str) -> None:
    program = (
        "import sys\n"
        "from sparklog.model.settings.tls_settings import tls_settings_of_client\n"
        "from sparklog.network.tls.from_settings import client_side\n"
        f"client_side(tls_settings_of_client({{'ssl.truststore.location': {trust!r}}})).context()\n"
        "assert not any(name.startswith('cryptography') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_plain_broker_imports_nothing_of_tls() -> None:
    program = (
        "import sys\n"
        "from sparklog.model.settings.config import BrokerConfig\n"
        "BrokerConfig.parse({'listeners': 'PLAINTEXT://:0'})\n"
        "assert not {'ssl', '_ssl', 'cryptography'} & sys.modules.keys()\n"
        "assert 'sparklog.model.settings.tls_settings' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
