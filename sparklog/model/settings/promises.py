"""Kafka's settings of security that sparklog refuses, because it does not keep what they promise yet.

Accepting them with a warning would be dangerous: the operator could believe that the cluster is protected
while it serves every client. At Kafka's default a setting promises nothing, and is accepted without a word.
The listeners' security protocols are checked in ``sparklog.model.listeners``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.kafka_numbers import ConfigType
from sparklog.model.settings import security_defaults
from sparklog.model.settings.kafka_names import AUTHORIZER_PREFIX, KAFKA_BROKER_TYPES, without_listener

_TRUSTED: Final = "leave it out, and let only those reach the brokers' ports whom you trust"
_LEAVE_OUT: Final = "leave it out"
_AT_START_ALONE: Final = ("ssl.", "sasl.")


@dataclass(frozen=True, slots=True)
class _Unkept:
    """A promise that is not kept: the default that asks for nothing, what is wrong otherwise, what to do."""

    default: str
    problem: str
    remedy: str

    def is_asked_for(self, value: str) -> bool:
        return _compared(value) != _compared(self.default)


def _unkept(defaults: Mapping[str, str], problem: str, remedy: str) -> Mapping[str, _Unkept]:
    return MappingProxyType({name: _Unkept(default, problem, remedy) for name, default in defaults.items()})


_UNKEPT: Final = MappingProxyType(
    {
        **_unkept(
            security_defaults.RULES,
            "sparklog keeps access rules in the brokers' own ZooKeeper",
            _LEAVE_OUT,
        ),
        **_unkept(
            security_defaults.JAVA_TLS,
            "sparklog's TLS is that of OpenSSL, and it takes no such choice",
            _LEAVE_OUT,
        ),
        **_unkept(
            security_defaults.LOGIN,
            "sparklog's logins are SCRAM and PLAIN with Kafka's own principals, and take no such choice",
            _LEAVE_OUT,
        ),
        **_unkept(
            security_defaults.REVOCATION,
            "sparklog does not ask whether certificates were revoked",
            _LEAVE_OUT,
        ),
        **_unkept(
            security_defaults.STORED_PASSWORDS,
            "sparklog stores no passwords of brokers in ZooKeeper, encoded or not",
            _LEAVE_OUT,
        ),
        **_unkept(
            security_defaults.LIMITS,
            "sparklog limits no rate of new connections yet, and takes no class of your own for quotas",
            _TRUSTED,
        ),
        **_unkept(
            security_defaults.POLICIES,
            "sparklog runs no policy of your own, and would take every change",
            _TRUSTED,
        ),
        **_unkept(
            security_defaults.DELETION,
            "sparklog deletes topics for every client that asks",
            _TRUSTED,
        ),
    }
)


def is_unkept_promise(name: str) -> bool:
    """Whether ``name`` is a setting of security that has no effect yet, and so may only have its default."""
    return _promise(name) is not None


def refuse_unkept_promise(name: str, text: str) -> None:
    """ConfigError for a security setting that asks for what is not implemented.

    ``name`` may have a listener's prefix.
    """
    promise = _promise(name)
    value = text.strip()
    if promise is not None and promise.is_asked_for(value):
        raise ConfigError(f"{name}={shown(name, value)}: {promise.problem}; {promise.remedy}")


def refuse_changes_of_security(names: Iterable[str]) -> None:
    """ConfigError if settings of TLS or logins are among those that change while brokers run."""
    refused = sorted(name for name in names if without_listener(name).startswith(_AT_START_ALONE))
    if refused:
        raise ConfigError(
            f"{', '.join(refused)} cannot be changed while brokers run, because whoever may change settings "
            "could take over the brokers' identity; change the files that the settings name, which brokers "
            "read again within ten seconds, or the settings of the start, and restart"
        )


def _promise(name: str) -> _Unkept | None:
    return _UNKEPT.get(without_listener(name))


def _compared(value: str) -> str | float:
    """``value`` in one spelling: numbers by what they count, texts without case and spaces."""
    try:
        return float(value)
    except ValueError:
        return "".join(value.split()).casefold()


def shown(name: str, value: str) -> str:
    """``value`` for an error text; passwords and keys are hidden."""
    kind = KAFKA_BROKER_TYPES.get(without_listener(name).removeprefix(AUTHORIZER_PREFIX))
    return "[hidden]" if kind is ConfigType.PASSWORD and value else value
