"""PEM as people write it becomes blocks that OpenSSL reads; what is cut is refused."""

import ssl

import pytest
from cryptography.hazmat.primitives import serialization

from sparklog.model.errors import ConfigError
from sparklog.network.tls.pem import certificates_of, private_key_of
from tests.network.tls.certificates import AUTHORITY, encrypted_pem_of, issued, pem_of

LEAF = issued()
TEXT = pem_of(LEAF).decode()
CERTIFICATE = LEAF.cert_chain_pems[0].bytes().decode()
DER = ssl.PEM_cert_to_DER_cert(CERTIFICATE)


@pytest.mark.parametrize(
    "text",
    [
        CERTIFICATE,
        CERTIFICATE.replace("\n", "\r\n"),
        CERTIFICATE.replace("\n", " "),
        CERTIFICATE.replace("\n", ""),
        f"subject=CN=a\n{CERTIFICATE}\nissuer=CN=b\n",
        CERTIFICATE.replace("CERTIFICATE", "X509 CERTIFICATE"),
        "\ufeff" + CERTIFICATE,
    ],
)
def test_a_certificate_is_read_however_its_lines_are_broken(text: str) -> None:
    (found,) = certificates_of(text)
    assert ssl.PEM_cert_to_DER_cert(found.replace("X509 ", "")) == DER
    assert max(map(len, found.splitlines())) <= 64


def test_a_key_and_certificates_are_found_in_any_order() -> None:
    key, _, certificates = TEXT.partition("-----END EC PRIVATE KEY-----\n")
    turned = f"{certificates}{key}-----END EC PRIVATE KEY-----\n"
    assert str(private_key_of(turned)) == str(private_key_of(TEXT))
    assert certificates_of(turned) == certificates_of(TEXT)


def test_an_encrypted_key_is_known_in_both_of_its_forms() -> None:
    assert not private_key_of(TEXT).is_encrypted
    assert private_key_of(encrypted_pem_of(LEAF).decode()).is_encrypted
    key = serialization.load_pem_private_key(LEAF.private_key_pem.bytes(), None)
    old = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.BestAvailableEncryption(b"planted"),
    )
    block = private_key_of(old.decode())
    assert block.is_encrypted
    assert serialization.load_pem_private_key(str(block).encode(), b"planted").private_numbers()


def test_a_key_shows_nothing() -> None:
    assert repr(private_key_of(TEXT)) == "PemBlock(EC PRIVATE KEY)"


def test_a_text_that_is_cut_anywhere_never_passes_for_fewer_certificates() -> None:
    whole = AUTHORITY.cert_pem.bytes().decode() * 2
    for end in range(0, len(whole), 7):
        text = whole[:end]
        if "-----BEGIN " in text.rpartition("-----END CERTIFICATE-----")[2]:
            with pytest.raises(ConfigError, match="it is cut, or still being written"):
                certificates_of(text)
        else:
            assert len(certificates_of(text)) == text.count("-----END CERTIFICATE-----")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it has 0 private keys in PEM, and must have one"),
        (CERTIFICATE, "it has 0 private keys"),
        (TEXT + TEXT, "it has 2 private keys"),
        ("-----BEGIN PRIVATE KEY-----\nMII*\n-----END PRIVATE KEY-----", "a block PRIVATE KEY is no base64"),
        ("-----BEGIN PRIVATE KEY-----\nMIIa", "begins and does not end"),
    ],
)
def test_a_text_without_one_whole_key_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem.replace("*", r"\*")):
        private_key_of(text)


@pytest.mark.parametrize("damage", ["\ufffd", "Owner: Zo\u00eb\n\n"])
def test_characters_that_no_pem_has_are_named(damage: str) -> None:
    with pytest.raises(ConfigError, match="a block CERTIFICATE has characters that are not ASCII"):
        certificates_of(CERTIFICATE.replace("-----\n", f"-----\n{damage}", 1))
