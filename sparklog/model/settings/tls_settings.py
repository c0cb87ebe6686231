"""What the settings ``ssl.*`` ask of one side of TLS: of a listener, or of all that a client dials.

A listener's own value, ``listener.name.NAME.ssl.…`` with its name in lower case, comes before that of all
listeners. Files are known by their content when they are read (``sparklog.network.tls``), so that a store's
type decides nothing. Secrets and locations may be references (``sparklog.model.settings.secrets``).
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.settings.cipher_suites import chosen_suites
from sparklog.model.settings.kafka_names import listener_prefix
from sparklog.model.settings.principal_rules import PrincipalRules
from sparklog.model.settings.promises import refuse_unkept_promise
from sparklog.model.settings.secrets import Secret
from sparklog.model.settings.security_defaults import JAVA_TLS
from sparklog.model.settings.setting import render
from sparklog.model.settings.tls_rows import METRICS_CLIENT_AUTH, METRICS_TLS, TLS_SETTINGS

TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
STORE_TYPES: Final = ("JKS", "PKCS12", "PEM")

_CONTEXTS: Final = ("TLS", *TLS_VERSIONS)
"""Names of ``ssl.protocol``. As in Kafka, ``ssl.enabled.protocols`` has the versions that are spoken."""

_DEFAULTS: Final[Mapping[str, str]] = {one.name: render(one.default) for one in TLS_SETTINGS}

ZOOKEEPER_PREFIX: Final = "zookeeper."

_OF_LISTENERS: Final = frozenset({"ssl.client.auth", "ssl.principal.mapping.rules"})

CLIENT_TLS_NAMES: Final = frozenset(_DEFAULTS) - _OF_LISTENERS
"""The settings of TLS that a client may have."""


class ClientAuth(Enum):
    """Whether a listener wants certificates of its clients."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A file with a key or with authorities. ``location`` may be a reference."""

    setting: str
    location: str
    password: Secret | None


@dataclass(frozen=True, slots=True)
class InlineKey:
    """A private key and its certificates, the owner's first, as PEM in the settings themselves."""

    key: Secret
    chain: Secret


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """One side's settings. ``key_password`` protects the key inside of its store, if it has one of its own.

    Without a trust store the system's authorities count. ``cipher_suites`` are OpenSSL's names of those for
    TLS 1.2; without any OpenSSL chooses.
    """

    key_store: StoreFile | InlineKey | None = None
    key_password: Secret | None = None
    trust_store: StoreFile | Secret | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    checks_host_names: bool = True
    versions: tuple[str, ...] = TLS_VERSIONS
    cipher_suites: tuple[str, ...] = ()
    principal_rules: PrincipalRules = PrincipalRules()  # noqa: RUF009 (it is frozen)


def tls_settings_of_listener(given: Mapping[str, str], listener: str) -> TlsSettings:
    """The settings of a listener that speaks TLS; ConfigError with the setting, its value and the remedy."""
    settings = _Given(given, listener_prefix(listener)).read()
    if settings.key_store is None:
        raise ConfigError(
            f"listener {listener} speaks TLS and has no certificate: set ssl.keystore.location, or "
            "ssl.keystore.key with ssl.keystore.certificate.chain"
        )
    return settings


def tls_settings_of_metrics(given: Mapping[str, str]) -> TlsSettings:
    """The settings of what serves metrics over TLS: ``ssl.…`` of all listeners, but for whether clients show
    certificates. ConfigError if they cannot work.
    """
    client_auth = given.get(METRICS_CLIENT_AUTH, ClientAuth.NONE.value)
    settings = _Given({**given, "ssl.client.auth": client_auth}).read()
    if settings.key_store is None:
        raise ConfigError(
            f"{METRICS_TLS}=true: no certificate to serve metrics with; set ssl.keystore.location, or "
            "ssl.keystore.key with ssl.keystore.certificate.chain, for all listeners"
        )
    if settings.client_auth is not ClientAuth.NONE and settings.trust_store is None:
        raise ConfigError(
            f"{METRICS_CLIENT_AUTH}={client_auth}: no authority whose certificates count; name it in "
            "ssl.truststore.location"
        )
    return settings


def tls_settings_of_client(given: Mapping[str, str]) -> TlsSettings:
    """The settings of a client among its properties ``given``, by Kafka's names; those of TLS alone are read.

    Raises ConfigError as that of a listener, and for a name that clients do not have.
    """
    for name in given:
        if name.startswith("ssl.") and name not in CLIENT_TLS_NAMES:
            _refuse_clients(name, given[name])
    return _Given(given).read()


def tls_settings_of_zookeeper(given: Mapping[str, str]) -> TlsSettings:
    """The settings of connections to ZooKeeper, ``zookeeper.ssl.…``; no others stand in for them."""
    own = {name: text for name, text in given.items() if name.startswith(f"{ZOOKEEPER_PREFIX}ssl.")}
    chosen = {name: text for name, text in own.items() if text.strip() or name.endswith(".algorithm")}
    return _Given(chosen, ZOOKEEPER_PREFIX).read()


def check_tls_settings(given: Mapping[str, str]) -> None:
    """ConfigError if the settings ``ssl.*`` of all listeners cannot be."""
    _Given(given).read()


def _refuse_clients(name: str, text: str) -> None:
    if name in JAVA_TLS:
        refuse_unkept_promise(name, text)
        return
    if name in _OF_LISTENERS:
        raise ConfigError(f"{name}={text}: it is a setting of brokers; leave it out")
    near = difflib.get_close_matches(name, sorted(CLIENT_TLS_NAMES), n=1, cutoff=0.6)
    raise ConfigError(f"unknown setting {name!r}" + (f"; did you mean {near[0]}?" if near else ""))


class _Given:
    """The settings of one side, by their names without prefix."""

    def __init__(self, given: Mapping[str, str], prefix: str = "") -> None:
        self._given = given
        self._prefix = prefix

    def read(self) -> TlsSettings:
        for store in ("ssl.keystore.type", "ssl.truststore.type"):
            self._choice(store, STORE_TYPES)
        self._choice("ssl.protocol", _CONTEXTS)
        versions = self._versions()
        suites, versions = chosen_suites(
            self._shown("ssl.cipher.suites"), self._list("ssl.cipher.suites"), versions
        )
        return TlsSettings(
            key_store=self._key_store(),
            key_password=self._secret("ssl.key.password"),
            trust_store=self._trust_store(),
            client_auth=ClientAuth(
                self._choice("ssl.client.auth", tuple(one.value for one in ClientAuth)).lower()
            ),
            checks_host_names=self._checks_host_names(),
            versions=versions,
            cipher_suites=suites,
            principal_rules=self._rules(),
        )

    def _name(self, name: str) -> str:
        """The full name under which the setting is given; the plain one if it is not."""
        return self._prefix + name if self._prefix + name in self._given else name

    def _text(self, name: str) -> str:
        return self._given.get(self._name(name), _DEFAULTS[name]).strip()

    def _shown(self, name: str) -> str:
        return f"{self._name(name)}={self._text(name)}"

    def _list(self, name: str) -> tuple[str, ...]:
        return tuple(item for item in (part.strip() for part in self._text(name).split(",")) if item)

    def _secret(self, name: str) -> Secret | None:
        text = self._text(name)
        return Secret(text, self._name(name)) if text else None

    def _choice(self, name: str, choices: tuple[str, ...]) -> str:
        found = next((one for one in choices if one.lower() == self._text(name).lower()), None)
        if found is None:
            raise ConfigError(f"{self._shown(name)}: it must be one of {', '.join(choices)}")
        return found

    def _versions(self) -> tuple[str, ...]:
        name = "ssl.enabled.protocols"
        asked = self._list(name)
        old = [one for one in asked if one not in TLS_VERSIONS]
        if old or not asked:
            raise ConfigError(
                f"{self._shown(name)}: it must have {' or '.join(TLS_VERSIONS)}, or both, and no other, "
                "because older versions are broken"
            )
        return tuple(one for one in TLS_VERSIONS if one in asked)

    def _checks_host_names(self) -> bool:
        name = "ssl.endpoint.identification.algorithm"
        if self._text(name).lower() not in ("", "https"):
            raise ConfigError(
                f"{self._shown(name)}: it must be https, or empty, which trusts a certificate whatever host "
                "it is for"
            )
        return bool(self._text(name))

    def _rules(self) -> PrincipalRules:
        name = "ssl.principal.mapping.rules"
        try:
            return PrincipalRules.parse(self._text(name))
        except ConfigError as error:
            raise ConfigError(f"{self._shown(name)}: {error}") from None

    def _key_store(self) -> StoreFile | InlineKey | None:
        file = self._file("ssl.keystore.location", "ssl.keystore.password")
        key, chain = self._secret("ssl.keystore.key"), self._secret("ssl.keystore.certificate.chain")
        if file and (key or chain):
            raise ConfigError(
                f"{self._shown('ssl.keystore.location')}: there is also {(key or chain or file).setting}; "
                "leave one of the two out"
            )
        if key and chain:
            return InlineKey(key, chain)
        if key or chain:
            here, missing = ("ssl.keystore.key", "ssl.keystore.certificate.chain")[:: 1 if key else -1]
            raise ConfigError(
                f"{self._name(here)} is given without {missing}; set both, or a key store's file"
            )
        return file

    def _trust_store(self) -> StoreFile | Secret | None:
        file = self._file("ssl.truststore.location", "ssl.truststore.password")
        inline = self._secret("ssl.truststore.certificates")
        if file and inline:
            raise ConfigError(
                f"{self._shown('ssl.truststore.location')}: there is also {inline.setting}; leave one of the "
                "two out"
            )
        return file or inline

    def _file(self, location: str, password: str) -> StoreFile | None:
        if not self._text(location):
            return None
        return StoreFile(self._name(location), self._text(location), self._secret(password))
