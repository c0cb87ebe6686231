"""What the settings of TLS mean together with the listeners. Brokers that use none do not import it.

Settings of brokers travel to their processes, through Spark's tasks, and are seen on command lines. So a
secret among them is a reference (``sparklog.model.settings.secrets``).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.model.listeners import Listeners
from sparklog.model.settings.kafka_names import listener_prefix, without_listener
from sparklog.model.settings.secrets import refuse_literal_secret
from sparklog.model.settings.tls_rows import (
    METRICS_CLIENT_AUTH,
    METRICS_TLS,
    is_tls_setting,
    metrics_have_tls,
)
from sparklog.model.settings.tls_settings import (
    ClientAuth,
    check_tls_settings,
    tls_settings_of_listener,
    tls_settings_of_metrics,
)

_SECRETS: Final = frozenset(
    {"ssl.keystore.password", "ssl.keystore.key", "ssl.key.password", "ssl.truststore.password"}
)


def check_tls(given: Mapping[str, str], listeners: Listeners) -> tuple[str, ...]:
    """Warnings for the settings of TLS among ``given``; ConfigError if they cannot work."""
    names = [name for name in given if is_tls_setting(name)]
    for name in names:
        if without_listener(name) in _SECRETS:
            refuse_literal_secret(name, given[name])
        _refuse_without_listener(name, listeners)
    check_tls_settings(given)
    of_metrics = _of_metrics(given)
    if listeners.with_tls():
        in_the_clear = _of_listeners_in_the_clear(names, listeners)
        return (*of_metrics, *in_the_clear, *_of_anybodys_clients(given, listeners))
    if not names or metrics_have_tls(given):
        return of_metrics
    return (
        *of_metrics,
        f"no listener speaks TLS, so that {', '.join(sorted(names))} has no effect: map a listener to SSL in "
        "listener.security.protocol.map, or call one SSL",
    )


def _of_metrics(given: Mapping[str, str]) -> tuple[str, ...]:
    if metrics_have_tls(given):
        tls_settings_of_metrics(given)
        return ()
    if METRICS_CLIENT_AUTH not in given:
        return ()
    return (f"{METRICS_CLIENT_AUTH} has no effect without {METRICS_TLS}=true",)


def _of_listeners_in_the_clear(names: Iterable[str], listeners: Listeners) -> Iterator[str]:
    with_tls = tuple(map(listener_prefix, listeners.with_tls()))
    for name in sorted(names):
        if without_listener(name) != name and not name.startswith(with_tls):
            yield (
                f"{name} has no effect, because its listener is in the clear: map it to SSL in "
                "listener.security.protocol.map, or leave the setting out"
            )


def _of_anybodys_clients(given: Mapping[str, str], listeners: Listeners) -> Iterator[str]:
    for listener in listeners.with_tls():
        settings = tls_settings_of_listener(given, listener)
        if settings.client_auth is not ClientAuth.NONE and settings.trust_store is None:
            yield (
                f"listener {listener} accepts the certificates of all authorities that this system trusts, "
                "which anybody can get: name that of your clients in ssl.truststore.location"
            )


def _refuse_without_listener(name: str, listeners: Listeners) -> None:
    base = without_listener(name)
    if base == name or any(name == listener_prefix(one) + base for one in listeners.bound):
        return
    there_are = ", ".join(listener_prefix(one) for one in listeners.bound)
    raise ConfigError(f"{name}: no listener has this prefix, and listeners have {there_are}; correct it")
