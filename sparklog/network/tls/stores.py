"""Key stores and trust stores of one side, out of files or out of the settings themselves.

A file is PEM or PKCS12, whatever its name and ``ssl.keystore.type`` say: its content decides. Java's JKS is
refused, with the command that converts it. Every error names the setting, the file, and what is wrong.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from sparklog.credentials.references import resolve, reveal
from sparklog.credentials.secret_files import ReadFile, SecretFile
from sparklog.model.errors import ConfigError
from sparklog.model.settings.secrets import Secret
from sparklog.model.settings.tls_settings import InlineKey, StoreFile, TlsSettings
from sparklog.network.tls.pem import certificates_of, private_key_of

_PEM: Final = b"-----BEGIN "
_JKS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_PKCS12: Final = re.compile(rb"\x30(?:[\x00-\x80]|\x81.|\x82..|\x83...|\x84....)\x02\x01\x03", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Identity:
    """A side's certificates, its own first, and the key of that, as PEM. ``place`` is for error texts.

    ``exposure``: that others may open the file of the key, in words, with the remedy.
    """

    place: str
    chain: tuple[str, ...]
    key: str = field(repr=False)
    exposure: str | None = None


def identity_of(settings: TlsSettings, read: ReadFile) -> Identity | None:
    """The key store; None without any. Raises ConfigError. ``read``: how files are read."""
    store = settings.key_store
    if isinstance(store, InlineKey):
        chain = _certificates(store.chain.setting, reveal(store.chain, read))
        return Identity(
            store.chain.setting, chain, _key(store.key.setting, reveal(store.key, read), settings, read)
        )
    if store is None:
        return None
    place, file = _file(store, read)
    exposure = file.exposure()
    warning = None if exposure is None else f"{store.setting}: {exposure}"
    if _is_pem(place, file.content):
        _refuse_password(place, store)
        text = file.content.decode("utf-8", "replace")
        return Identity(place, _certificates(place, text), _key(place, text, settings, read), warning)
    # it brings cryptography, which PEM does without
    from sparklog.network.tls import pkcs12

    password = _password(store, read)
    with _naming(place):
        key, chain = pkcs12.key_and_chain(file.content, password)
    return Identity(place, chain, key, warning)


def authorities_of(settings: TlsSettings, read: ReadFile) -> tuple[str, ...] | None:
    """The certificates that are trusted, as PEM; None for the system's. Raises ConfigError."""
    store = settings.trust_store
    if isinstance(store, Secret):
        return _certificates(store.setting, reveal(store, read))
    if store is None:
        return None
    place, file = _file(store, read)
    if _is_pem(place, file.content):
        _refuse_password(place, store)
        return _certificates(place, file.content.decode("utf-8", "replace"))
    # as above
    from sparklog.network.tls import pkcs12

    password = _password(store, read)
    with _naming(place):
        return _some(pkcs12.authorities(file.content, password))


def _file(store: StoreFile, read: ReadFile) -> tuple[str, SecretFile]:
    """The setting with the file's path, and the file."""
    with _naming(store.setting):
        path = resolve(store.location, read).strip()
        return f"{store.setting}={path}", read(path)


def _password(store: StoreFile, read: ReadFile) -> str:
    return reveal(store.password, read) if store.password else ""


def _refuse_password(place: str, store: StoreFile) -> None:
    if store.password is not None:
        raise ConfigError(
            f"{place} is PEM, which has no password of its own; leave {store.password.setting} out (that of "
            "an encrypted key is ssl.key.password)"
        )


def _certificates(place: str, text: str) -> tuple[str, ...]:
    with _naming(place):
        return _some(certificates_of(text))


def _key(place: str, text: str, settings: TlsSettings, read: ReadFile) -> str:
    with _naming(place):
        block = private_key_of(text)
        if not block.is_encrypted:
            return str(block)
        if settings.key_password is None:
            raise ConfigError("the private key is encrypted, and ssl.key.password is not set; set it")
        # as above
        from sparklog.network.tls.pkcs12 import decrypted_key

        return decrypted_key(str(block), reveal(settings.key_password, read))


def _is_pem(place: str, content: bytes) -> bool:
    """Whether it is PEM, and not PKCS12; ConfigError if it is neither."""
    if _PEM in content:
        return True
    if content.startswith(_JKS):
        file = place.partition("=")[2]
        raise ConfigError(
            f"{place} is a JKS store, which only Java reads; convert it, and name the new file: keytool "
            f"-importkeystore -srckeystore {file} -destkeystore {file}.p12 -deststoretype PKCS12"
        )
    if _PKCS12.match(content):
        return False
    if not content:
        raise ConfigError(f"{place} is empty: it is still being written, or the wrong file")
    raise ConfigError(f"{place} is neither PEM nor PKCS12; convert it to one of them")


def _some(certificates: tuple[str, ...]) -> tuple[str, ...]:
    if not certificates:
        raise ConfigError("it has no certificate")
    return certificates


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """A ConfigError gets the name of the setting."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from None
