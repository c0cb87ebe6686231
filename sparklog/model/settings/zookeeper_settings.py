"""What settings ask of connections to ZooKeeper: whom to show, and whether others may change the nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sparklog.model.errors import ConfigError
from sparklog.model.settings.secrets import Secret, is_reference, refuse_literal_secret
from sparklog.model.settings.zookeeper_rows import DIGEST, SET_ACL, TLS

if TYPE_CHECKING:
    from sparklog.model.settings.tls_settings import TlsSettings

_TLS_PREFIX: Final = "zookeeper.ssl."
_REMEDY: Final = (
    "put USER:PASSWORD into a file, and write ${file:PATH:KEY}, ${directory:DIR:FILE} or ${env:NAME}"
)


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """``digest`` is ``USER:PASSWORD``, whose references are not resolved yet; None shows nothing."""

    digest: Secret | None = None
    closes_nodes: bool = False
    tls: "TlsSettings | None" = None
    """None for connections in the clear."""


def zookeeper_settings(given: Mapping[str, str]) -> ZooKeeperSettings:
    """Those among ``given``, whose other names are passed over. Raises ConfigError if they cannot work."""
    for name in given:
        if name.startswith(_TLS_PREFIX) and name.endswith(".password"):
            refuse_literal_secret(name, given[name])
    text = given.get(DIGEST, "").strip()
    if text:
        _refuse_literal(text)
    closes_nodes = given.get(SET_ACL, "false").strip().lower() == "true"
    if closes_nodes and not text:
        raise ConfigError(
            f"{SET_ACL}=true closes nodes to all but the user of {DIGEST}, which is not set; set it, and "
            + _REMEDY
        )
    return ZooKeeperSettings(Secret(text, DIGEST) if text else None, closes_nodes, _tls(given))


def check_zookeeper(given: Mapping[str, str]) -> tuple[str, ...]:
    """Warnings for these settings; ConfigError if they cannot work."""
    settings = zookeeper_settings(given)
    without_effect = sorted(name for name in given if name.startswith(_TLS_PREFIX) and name != TLS)
    if settings.tls is not None or not without_effect:
        return ()
    return (f"{', '.join(without_effect)} has no effect without {TLS}=true",)


def _tls(given: Mapping[str, str]) -> "TlsSettings | None":
    if given.get(TLS, "false").strip().lower() != "true":
        return None
    # start time: most connections are in the clear
    from sparklog.model.settings.tls_settings import tls_settings_of_zookeeper

    return tls_settings_of_zookeeper(given)


def _refuse_literal(text: str) -> None:
    """The user may stand there as it is, the password not."""
    user, colon, password = text.partition(":")
    is_named = is_reference(text) or (bool(colon) and "$" not in user and is_reference(password))
    if not is_named:
        raise ConfigError(
            f"{DIGEST}=[hidden]: it is a secret, and settings of brokers travel and are shown; {_REMEDY}"
        )


def refuse_unfit_digest(digest: str) -> None:
    """ConfigError for what is no user and password, once references are resolved."""
    user, colon, password = digest.partition(":")
    if not (user and colon and password) or not digest.isprintable():
        raise ConfigError(f"{DIGEST}: what it names is not of the form USER:PASSWORD; correct it")
