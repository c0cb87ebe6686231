"""How a client of a run reaches its cluster: at which addresses, over what, and as whom.

Every client takes its settings from here, in the words of its library. An open cluster is one whose clients
have no authority to trust: they connect in the clear, and nobody logs in.
"""

import ssl
from dataclasses import dataclass, field
from typing import Any, Final

from sparklog.client.security.connecting import connector_of
from sparklog.model.settings.jaas import PLAIN_MODULE, SCRAM_MODULE
from sparklog.network.dialing.connector import Connector

PLAIN: Final = "PLAIN"
SCRAM: Final = "SCRAM-SHA-512"
_PROTOCOL: Final = "SASL_SSL"


@dataclass(frozen=True, slots=True)
class Access:
    """``bootstrap`` is addresses with commas between them."""

    bootstrap: str
    authority: str = ""
    """The file of the authority whose certificates brokers show; empty: the cluster is open."""
    user: str = ""
    password: str = field(default="", repr=False)
    mechanism: str = SCRAM

    @property
    def is_secured(self) -> bool:
        """Whether the client speaks TLS and logs in."""
        return bool(self.authority)

    def confluent(self) -> dict[str, Any]:
        """Of every client of librdkafka."""
        common = {"bootstrap.servers": self.bootstrap}
        if not self.is_secured:
            return common
        return {
            **common,
            "security.protocol": _PROTOCOL,
            "ssl.ca.location": self.authority,
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.user,
            "sasl.password": self.password,
        }

    def kafka_python(self) -> dict[str, Any]:
        """Of every client of kafka-python."""
        login = {"ssl_cafile": self.authority, **self._login()} if self.is_secured else {}
        return {"bootstrap_servers": self.bootstrap.split(","), **login}

    def aiokafka(self) -> dict[str, Any]:
        """Of every client of aiokafka; reads the authority's file."""
        common: dict[str, Any] = {"bootstrap_servers": self.bootstrap.split(",")}
        if not self.is_secured:
            return common
        context = ssl.create_default_context(cafile=self.authority)
        return {**common, "ssl_context": context, **self._login()}

    def _login(self) -> dict[str, Any]:
        return {
            "security_protocol": _PROTOCOL,
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.password,
        }

    def properties(self) -> dict[str, str]:
        """How to connect by Kafka's names, as files of ``--command-config`` have them; no addresses."""
        if not self.is_secured:
            return {}
        module = PLAIN_MODULE if self.mechanism == PLAIN else SCRAM_MODULE
        return {
            "security.protocol": _PROTOCOL,
            "ssl.truststore.location": self.authority,
            "ssl.truststore.type": "PEM",
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": f'{module} required username="{self.user}" password="{self.password}";',
        }

    def spark(self) -> dict[str, str]:
        """Options of ``format("sparklog")``."""
        named = {"bootstrap.servers": self.bootstrap, **self.properties()}
        return {f"kafka.{name}": value for name, value in named.items()}

    def connector(self) -> Connector:
        """How sparklog's own client dials."""
        return connector_of(self.properties())
