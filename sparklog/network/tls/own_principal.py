"""By which principal other brokers know a broker: the name in its certificate, if they ask for one."""

from sparklog.core.security.requester import ANONYMOUS
from sparklog.credentials.secret_files import read_file
from sparklog.model.settings.tls_settings import ClientAuth, TlsSettings
from sparklog.network.tls.certificate_facts import facts_of
from sparklog.network.tls.stores import identity_of


def principal_among_brokers(settings: TlsSettings) -> str:
    """The principal that the listener of brokers gives to a peer with its own certificate. Raises ConfigError
    if its stores cannot be read.
    """
    identity = identity_of(settings, read_file)
    if identity is None or settings.client_auth is ClientAuth.NONE:
        return ANONYMOUS
    return f"User:{settings.principal_rules.name_of(facts_of(identity).owner)}"
