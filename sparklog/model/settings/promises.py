"""Kafka's security settings that sparklog refuses, because it does not implement them yet.

Accepting them with a warning would be dangerous: the operator could believe that the cluster is protected
while it serves every client. The listeners' security protocols are checked in ``sparklog.model.listeners``.
"""

from sparklog.model.errors import ConfigError
from sparklog.model.settings.kafka_names import without_listener

_INSIDE: str = "and let only those reach the brokers' ports whom you trust"


def refuse_unkept_promise(name: str, text: str) -> None:
    """ConfigError for a security setting that is not implemented; ``name`` may have a listener's prefix."""
    value = text.strip()
    problem = _problem(without_listener(name), value) if value else None
    if problem is not None:
        raise ConfigError(f"{name}={shown(name, value)}: {problem}; leave it out, {_INSIDE}")


def _problem(name: str, value: str) -> str | None:
    if name == "authorizer.class.name":
        return "sparklog has no authorizer yet, and would let every client do everything"
    if name == "ssl.client.auth" and value.lower() == "required":
        return "sparklog does not serve TLS yet, and would ask no client for a certificate"
    if name.startswith("ssl.keystore.") and (name, value.upper()) != ("ssl.keystore.type", "JKS"):
        return "sparklog does not serve TLS yet, and would send everything in the clear"
    if name == "sasl.jaas.config":
        return "sparklog does not authenticate clients yet, and would let everybody in"
    return None


def shown(name: str, value: str) -> str:
    """``value`` for an error text; passwords and keys are hidden."""
    is_secret = name.endswith((".password", ".key", ".secret", "sasl.jaas.config"))
    return "[hidden]" if is_secret and value else value
