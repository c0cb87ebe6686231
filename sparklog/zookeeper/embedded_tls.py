"""TLS of the embedded ZooKeeper: its certificate, key and authorities are those that its clients show.

Java reads stores from files alone, with their passwords beside them. So what the settings name, be it PEM or
PKCS12, is written anew as PEM without a password, into files that nobody else may read:

    data_dir/tls-key.pem         the key and its certificates
    data_dir/tls-trust.pem       the authorities of clients

They are written at each start; a certificate that is renewed counts from the next start on.
"""

import os
import socket
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sparklog.credentials.secret_files import read_file
from sparklog.model.errors import ConfigError
from sparklog.model.settings.tls_settings import TlsSettings
from sparklog.zookeeper.tls_socket import secured

if TYPE_CHECKING:
    from sparklog.network.tls.sides import TlsClient

JARS: Final = (
    "netty-buffer-*.jar",
    "netty-codec-[0-9]*.jar",
    "netty-codec-base-*.jar",
    "netty-common-*.jar",
    "netty-handler-[0-9]*.jar",
    "netty-resolver-[0-9]*.jar",
    "netty-transport-[0-9]*.jar",
    "netty-transport-classes-epoll-*.jar",
    "netty-transport-native-unix-common-*.jar",
)
"""What ZooKeeper's TLS needs beside its own jars. Earlier releases of netty have no codec-base."""

FLAGS: Final = ("-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",)

_KEY_FILE: Final = "tls-key.pem"
_TRUST_FILE: Final = "tls-trust.pem"


class EmbeddedTls:
    """Raises ConfigError for settings from which no server can be made."""

    def __init__(self, settings: TlsSettings) -> None:
        # Heavy, and servers in the clear have no need of it.
        from sparklog.network.tls.from_settings import client_side

        if settings.key_store is None:
            raise ConfigError(
                "zookeeper.ssl.client.enable=true: the embedded ZooKeeper needs a certificate for 127.0.0.1; "
                "set zookeeper.ssl.keystore.location, or give a ZooKeeper of your own with --zookeeper"
            )
        self._settings = settings
        self._client: TlsClient = client_side(settings)

    def write(self, data_dir: Path) -> dict[str, str]:
        """Write the stores; what ``zoo.cfg`` says of them."""
        # As above.
        from sparklog.network.tls.stores import authorities_of, identity_of

        identity = identity_of(self._settings, read_file)
        assert identity is not None, "checked at construction"
        _write_closed(data_dir / _KEY_FILE, "".join((_as_pkcs8(identity.key), *identity.chain)))
        config = {"ssl.keyStore.location": f"./{_KEY_FILE}", "ssl.keyStore.type": "PEM"}
        authorities = authorities_of(self._settings, read_file)
        if authorities is None:
            return {**config, "ssl.clientAuth": "none"}
        _write_closed(data_dir / _TRUST_FILE, "".join(authorities))
        trust = {"ssl.trustStore.location": f"./{_TRUST_FILE}", "ssl.trustStore.type": "PEM"}
        return {**config, **trust, "ssl.clientAuth": "need", "ssl.enabledProtocols": self._versions()}

    def ask(self, host: str, port: int, command: bytes, timeout_s: float) -> bytes:
        """The answer to a four-letter command; raises OSError if there is none."""
        sock = socket.create_connection((host, port), timeout=timeout_s)
        with closing(secured(sock, self._client, host, port)) as connection:
            connection.sendall(command)
            return b"".join(iter(lambda: connection.recv(4_096), b""))

    def _versions(self) -> str:
        return ",".join(self._settings.versions)


def _as_pkcs8(key: str) -> str:
    """The key in the only form that ZooKeeper reads."""
    # As above.
    from cryptography.hazmat.primitives import serialization

    loaded = serialization.load_pem_private_key(key.encode("ascii"), None)
    return loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode("ascii")


def _write_closed(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(text)
    new.replace(path)
