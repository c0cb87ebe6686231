"""Stores are PEM or PKCS12 by their content; each thing that is wrong with one has its words and its file."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from sparklog.credentials.secret_files import read_file
from sparklog.model.errors import ConfigError
from sparklog.model.settings.tls_settings import TlsSettings, tls_settings_of_client
from sparklog.network.tls.stores import authorities_of, identity_of
from tests.network.tls.certificates import (
    AUTHORITY,
    OTHER_AUTHORITY,
    PASSWORD,
    encrypted_pem_of,
    issued,
    of_client,
    pem_of,
    pkcs12_of,
    pkcs12_of_authority,
    written,
)

LEAF = issued()


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", PASSWORD)
    monkeypatch.setenv("EMPTY", "")


def chain_of(settings: TlsSettings) -> tuple[str, ...]:
    identity = identity_of(settings, read_file)
    assert identity is not None
    assert identity.key.startswith("-----BEGIN ")
    assert "ENCRYPTED" not in identity.key
    assert PASSWORD not in repr(identity)
    assert "PRIVATE KEY" not in repr(identity)
    return identity.chain


def expected() -> tuple[str, ...]:
    return tuple(one.bytes().decode() for one in LEAF.cert_chain_pems)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "PEM", "pem"])
@pytest.mark.parametrize("name", ["keys.pem", "keys.p12", "keys.jks"])
def test_neither_name_nor_type_decides_what_a_key_store_is(tmp_path: Path, name: str, kind: str) -> None:
    pem = written(tmp_path, name, pem_of(LEAF))
    assert chain_of(of_client(keystore_location=pem, keystore_type=kind)) == expected()
    store = written(tmp_path, name, pkcs12_of(LEAF))
    settings = of_client(keystore_location=store, keystore_type=kind, keystore_password="${env:PLANTED}")
    assert chain_of(settings) == expected()


@pytest.mark.parametrize("password", [PASSWORD, "${env:PLANTED}", " ${env:PLANTED} "])
def test_an_encrypted_key_is_opened_by_its_password_or_a_reference(tmp_path: Path, password: str) -> None:
    path = written(tmp_path, "keys.pem", encrypted_pem_of(LEAF))
    assert chain_of(of_client(keystore_location=path, key_password=password)) == expected()


def test_a_key_store_may_be_written_in_the_settings_themselves(tmp_path: Path) -> None:
    written(tmp_path, "key", LEAF.private_key_pem.bytes())
    settings = of_client(
        keystore_key=f"${{directory:{tmp_path}:key}}",
        keystore_certificate_chain="".join(expected()).replace("\n", " "),
    )
    assert chain_of(settings) == expected()


def test_a_chain_leads_from_the_owner_upwards_however_a_pkcs12_store_has_it(tmp_path: Path) -> None:
    middle = AUTHORITY.create_child_ca()
    lower = middle.create_child_ca()
    leaf = issued(authority=lower)
    key = serialization.load_pem_private_key(leaf.private_key_pem.bytes(), None)
    own, *others = (x509.load_pem_x509_certificate(one.bytes()) for one in leaf.cert_chain_pems)
    stranger = x509.load_pem_x509_certificate(OTHER_AUTHORITY.cert_pem.bytes())
    for shuffled in ([*others, stranger], [stranger, *reversed(others)]):
        content = pkcs12.serialize_key_and_certificates(
            b"a", key, own, shuffled, serialization.BestAvailableEncryption(PASSWORD.encode())
        )
        path = written(tmp_path, "keys.p12", content)
        settings = of_client(keystore_location=path, keystore_password=PASSWORD)
        assert chain_of(settings) == tuple(one.bytes().decode() for one in leaf.cert_chain_pems)
    assert len(others) == 2


def test_a_location_may_be_a_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYS", written(tmp_path, "keys.pem", pem_of(LEAF)))
    assert chain_of(of_client(keystore_location="${env:KEYS}")) == expected()


def test_authorities_come_from_pem_from_pkcs12_and_from_the_settings(tmp_path: Path) -> None:
    one, other = (each.cert_pem.bytes() for each in (AUTHORITY, OTHER_AUTHORITY))
    both = written(tmp_path, "both.pem", b"# two authorities\n" + one + other)
    assert authorities_of(of_client(truststore_location=both), read_file) == (one.decode(), other.decode())
    store = written(tmp_path, "trust", pkcs12_of_authority())
    settings = of_client(truststore_location=store, truststore_password="${env:PLANTED}")
    assert authorities_of(settings, read_file) == (one.decode(),)
    inline = of_client(truststore_certificates=one.decode())
    assert authorities_of(inline, read_file) == (one.decode(),)
    assert authorities_of(of_client(), read_file) is None
    assert identity_of(of_client(), read_file) is None


CASES = [
    (b"", {}, "ssl.keystore.location=PATH is empty: it is still being written, or the wrong file"),
    (b"hello", {}, "ssl.keystore.location=PATH is neither PEM nor PKCS12; convert it to one of them"),
    (
        b"\xfe\xed\xfe\xed\0\0\0\2",
        {},
        "PATH is a JKS store, which only Java reads; convert it, and name the new file: keytool "
        "-importkeystore -srckeystore PATH -destkeystore PATH.p12 -deststoretype PKCS12",
    ),
    (pem_of(LEAF)[:-40], {}, "PATH: a block of PEM begins and does not end: it is cut, or still being"),
    (LEAF.private_key_pem.bytes(), {}, "PATH: it has no certificate"),
    (AUTHORITY.cert_pem.bytes(), {}, "PATH: it has 0 private keys in PEM, and must have one"),
    (pem_of(LEAF), {"keystore_password": PASSWORD}, "PATH is PEM, which has no password of its own; leave"),
    (
        encrypted_pem_of(LEAF),
        {},
        "PATH: the private key is encrypted, and ssl.key.password is not set; set it",
    ),
    (encrypted_pem_of(LEAF), {"key_password": "wrong"}, "PATH: the password does not open the private key"),
    (
        encrypted_pem_of(LEAF),
        {"key_password": "${env:EMPTY}"},
        "PATH: the password does not open the private",
    ),
    (encrypted_pem_of(LEAF), {"key_password": "${env:NOT_THERE}"}, "ssl.key.password: ${env:NOT_THERE}: the"),
    (
        pkcs12_of(LEAF),
        {"keystore_password": "wrong"},
        "PATH: its password does not open it, or it is damaged",
    ),
    (pkcs12_of(LEAF), {}, "PATH: its password does not open it (there is none), or it is damaged"),
    (pkcs12_of(LEAF)[:300], {"keystore_password": PASSWORD}, "or it is damaged, or still being written"),
    (pkcs12_of_authority(), {"keystore_password": PASSWORD}, "it has no private key with its certificate"),
]


@pytest.mark.parametrize(("content", "more", "problem"), CASES)
def test_a_key_store_that_does_not_work_is_named_with_the_reason(
    tmp_path: Path, content: bytes, more: dict[str, str], problem: str
) -> None:
    path = written(tmp_path, "keys", content)
    with pytest.raises(ConfigError) as refused:
        identity_of(of_client(keystore_location=path, **more), read_file)
    assert problem.replace("PATH", path) in str(refused.value)
    assert str(refused.value).startswith("ssl.key")
    assert PASSWORD not in str(refused.value)
    assert "wrong" not in str(refused.value).replace("wrong file", "")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (LEAF.private_key_pem.bytes(), "ssl.truststore.location=PATH: it has no certificate"),
        (AUTHORITY.cert_pem.bytes()[:-9], "it is cut, or still being written"),
        (pkcs12_of(LEAF), "it has a private key; a trust store has the authorities' certificates alone"),
    ],
)
def test_a_trust_store_that_does_not_work_is_named_with_the_reason(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = written(tmp_path, "trust", content)
    password = {} if b"BEGIN" in content else {"truststore_password": PASSWORD}
    with pytest.raises(ConfigError) as refused:
        authorities_of(of_client(truststore_location=path, **password), read_file)
    assert problem.replace("PATH", path) in str(refused.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError) as refused:
        identity_of(of_client(keystore_location="/nowhere/keys.pem"), read_file)
    assert str(refused.value) == (
        "ssl.keystore.location: /nowhere/keys.pem cannot be read here: No such file or directory"
    )


@pytest.mark.integration
def test_stores_that_keytool_makes_are_read_and_its_jks_is_refused(tmp_path: Path) -> None:
    keytool = shutil.which("keytool")
    if keytool is None:
        pytest.skip("needs keytool")

    def run(*arguments: str) -> None:
        command = [keytool, *arguments, "-storepass", PASSWORD, "-noprompt"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    make = ("-genkeypair", "-alias", "a", "-keyalg", "EC", "-dname", "CN=duke", "-keypass", PASSWORD)
    run(*make, "-keystore", "keys.p12", "-storetype", "PKCS12")
    run(*make, "-keystore", "keys.jks", "-storetype", "JKS")
    run("-exportcert", "-rfc", "-alias", "a", "-keystore", "keys.p12", "-file", "own.pem")
    run("-importcert", "-alias", "b", "-file", "own.pem", "-keystore", "trust.p12", "-storetype", "PKCS12")
    own = (tmp_path / "own.pem").read_text()
    given = {
        "ssl.keystore.location": str(tmp_path / "keys.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.location": str(tmp_path / "trust.p12"),
        "ssl.truststore.password": PASSWORD,
    }
    settings = tls_settings_of_client(given)
    assert "".join(chain_of(settings)).split() == own.split()
    assert "".join(authorities_of(settings, read_file) or ()).split() == own.split()
    jks = tls_settings_of_client({**given, "ssl.keystore.location": str(tmp_path / "keys.jks")})
    with pytest.raises(ConfigError, match="is a JKS store, which only Java reads") as refused:
        identity_of(jks, read_file)
    converting = str(refused.value).partition("keytool ")[2].split()
    run(*converting, "-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
    converted = {**given, "ssl.keystore.location": str(tmp_path / "keys.jks.p12")}
    assert len(chain_of(tls_settings_of_client(converted))) == 1
