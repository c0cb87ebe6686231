"""Words that nobody may find: passwords and keys of a secured cluster, in files that its settings name.

Each is looked for as it is and in base64, in whose text a word begins at one of three places.
"""

import base64
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificates

from sparklog.model.settings.jaas import PLAIN_MODULE, SCRAM_MODULE
from tests.certificates import Authority
from tests.closed_files import CLOSED, write_closed

BEGIN_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
ENCRYPTED = frozenset({"encrypted key"})
"""What no file has as it is."""

PASSWORDS = ("broker", "admin", "alice", "guessed", "zookeeper", "keystore", "key")


def has_word(content: bytes, word: str) -> bool:
    """Whether ``content`` has the word, or its base64, at whichever of three places it begins there."""
    plain = word.encode()
    encoded = (base64.b64encode(bytes(shift) + plain)[4:-4] for shift in range(3))
    return plain in content or any(text in content for text in encoded)


@dataclass
class Planted:
    """Files in ``folder``, which is itself not looked through."""

    folder: Path
    words: dict[str, str] = field(default_factory=dict)
    """What is looked for, by what it is."""

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700)
        self.words = {name: f"planted-{name}-{secrets.token_hex(8)}" for name in PASSWORDS}
        of_zookeeper = {"zookeeper": f"sparklog:{self.words['zookeeper']}"}
        lines = [f"{name}={word}\n" for name, word in {**self.words, **of_zookeeper}.items()]
        write_closed(self.folder / "secrets.properties", "".join(lines))
        write_closed(self.folder / "keystore", self.words["keystore"])
        self.authority = Authority(self.folder / "tls")
        self._make_inline_key()
        self._make_key_store()
        self._make_encrypted_key()

    def reference(self, name: str) -> str:
        return f"${{file:{self.folder}/secrets.properties:{name}}}"

    def in_a_folder(self, name: str) -> str:
        return f"${{directory:{self.folder}:{name}}}"

    def found_in(self, content: bytes) -> list[str]:
        """Which of the words ``content`` has, by what they are."""
        return [name for name, word in self.words.items() if has_word(content, word)]

    def contents(self) -> bytes:
        """All files together."""
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())

    def settings_of_brokers(self) -> dict[str, str]:
        """Every kind of secret that brokers have, each by a reference."""
        broker = self.reference("broker")
        return {
            "listeners": "CLIENTS://:0,BROKERS://:0",
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,BROKERS:SASL_SSL",
            "inter.broker.listener.name": "BROKERS",
            "listener.name.clients.ssl.keystore.location": str(self.folder / "clients.p12"),
            "listener.name.clients.ssl.keystore.password": self.in_a_folder("keystore"),
            "listener.name.brokers.ssl.keystore.key": self.in_a_folder("inline.key"),
            "listener.name.brokers.ssl.keystore.certificate.chain": self.in_a_folder("inline.chain"),
            "ssl.truststore.location": str(self.authority.file),
            "listener.name.clients.ssl.client.auth": "requested",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.clients.plain.sasl.jaas.config": (
                f'{PLAIN_MODULE} required user_admin="{self.reference("admin")}";'
            ),
            "listener.name.brokers.plain.sasl.jaas.config": (
                f'{PLAIN_MODULE} required username=broker password="{broker}" user_broker="{broker}";'
            ),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:broker;User:admin",
            "zookeeper.digest": self.reference("zookeeper"),
            "zookeeper.set.acl": "true",
            "metrics.port": "0",
        }

    def client(self, user: str, mechanism: str, password: str) -> dict[str, str]:
        """A client's properties; ``password`` is the name of the word."""
        module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": (
                f'{module} required username="{user}" password="{self.reference(password)}";'
            ),
            "ssl.truststore.location": str(self.authority.file),
        }

    def of_a_key(self, password: str = "key") -> dict[str, str]:
        """A client's encrypted key; ``password`` is the name of the word."""
        return {
            "ssl.keystore.location": str(self.folder / "tls" / "alice.pem"),
            "ssl.key.password": self.reference(password),
        }

    def inline_key(self) -> dict[str, str]:
        """A client's key and certificates in its properties themselves."""
        key, begin, chain = (self.folder / "tls" / "inline.pem").read_text().partition(BEGIN_CERTIFICATE)
        return {"ssl.keystore.key": key, "ssl.keystore.certificate.chain": begin + chain}

    def command_config(self, name: str, properties: dict[str, str]) -> Path:
        file = self.folder / f"{name}.properties"
        file.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
        return file

    def _make_inline_key(self) -> None:
        key, begin, chain = self.authority.issue("broker").read_text().partition(BEGIN_CERTIFICATE)
        client = self.authority.issue("inline").read_text()
        self.words["inline key of a client"] = client.splitlines()[2]
        write_closed(self.folder / "inline.key", key)
        write_closed(self.folder / "inline.chain", begin + chain)
        self.words["inline key"] = key.splitlines()[2]

    def _make_key_store(self) -> None:
        pem = self.authority.issue("clients").read_bytes()
        key, (own, *others) = load_pem_private_key(pem, None), load_pem_x509_certificates(pem)
        assert isinstance(key, EllipticCurvePrivateKey)
        encryption = BestAvailableEncryption(self.words["keystore"].encode())
        file = self.folder / "clients.p12"
        file.write_bytes(pkcs12.serialize_key_and_certificates(b"clients", key, own, others, encryption))
        file.chmod(CLOSED)
        self.words["key in a store"] = pem.decode().splitlines()[2]

    def _make_encrypted_key(self) -> None:
        pem = self.authority.issue("alice")
        text = pem.read_text()
        encryption = BestAvailableEncryption(self.words["key"].encode())
        key = load_pem_private_key(text.encode(), None)
        encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
        write_closed(pem, encrypted + text[text.index(BEGIN_CERTIFICATE) :])
        self.words["encrypted key"] = text.splitlines()[2]
