"""The properties files of a secured cluster's folder: of brokers, of its administrator, of a user.

Brokers know each other by certificates, on a listener of their own. Clients log in over TLS: users by SCRAM,
and the administrator, who must get in before there are users, by PLAIN. Files name secrets by references.
"""

from pathlib import Path
from typing import Final

from sparklog.model.errors import ConfigError

AUTHORITY_FILE: Final = "ca.pem"
AUTHORITY_KEY_FILE: Final = "ca-key.pem"
BROKER_FILE: Final = "broker.pem"
ADMIN_FILE: Final = "admin.pem"
SECRETS_FILE: Final = "secrets.properties"
SERVER_FILE: Final = "server.properties"
ADMIN_PROPERTIES_FILE: Final = "admin.properties"
CLIENT_PROPERTIES_FILE: Final = "client.properties"

BROKER: Final = "broker"
ADMIN: Final = "admin"
ZOOKEEPER: Final = "zookeeper"
CLIENTS_LISTENER: Final = "CLIENTS"
BROKERS_LISTENER: Final = "BROKERS"

_MODULES: Final = "org.apache.kafka.common.security"
_NOT_IN_PATHS: Final = "${}:\"'\\#!=\n\r\t"


def check_folder(folder: Path) -> None:
    """ConfigError if the files could not name ``folder``: their formats use some characters themselves."""
    text = str(folder)
    wrong = sorted({one for one in text if one in _NOT_IN_PATHS or not one.isprintable()})
    if wrong or text != text.strip():
        raise ConfigError(
            f"{text!r} cannot be named in properties files, because of "
            f"{' '.join(map(repr, wrong)) or 'blanks'}; choose a folder with a plainer path"
        )


def server_properties(folder: Path) -> str:
    """Settings of brokers."""
    return f"""\
# Settings of brokers in a secured cluster: sparklog start --settings THIS_FILE.
# Every host needs this folder's {AUTHORITY_FILE}, {BROKER_FILE} and {SECRETS_FILE} at this path;
# {AUTHORITY_KEY_FILE} stays here.

# Clients connect to the first listener and log in; brokers and the controller use the second one.
listeners={CLIENTS_LISTENER}://:0,{BROKERS_LISTENER}://:0
listener.security.protocol.map={CLIENTS_LISTENER}:SASL_SSL,{BROKERS_LISTENER}:SSL
inter.broker.listener.name={BROKERS_LISTENER}

ssl.keystore.location={folder / BROKER_FILE}
ssl.truststore.location={folder / AUTHORITY_FILE}
listener.name.brokers.ssl.client.auth=required

# Users log in by SCRAM; PLAIN is for the administrator, who makes them.
sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
listener.name.clients.plain.sasl.jaas.config={_MODULES}.plain.PlainLoginModule required \\
  user_{ADMIN}="{_secret(folder, ADMIN)}";

# The cluster alone may change its nodes in ZooKeeper.
zookeeper.digest={_secret(folder, ZOOKEEPER)}
zookeeper.set.acl=true

# Nobody may do what no rule allows, but for these.
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
super.users=User:CN={BROKER};User:CN={ADMIN};User:{ADMIN}
"""


def admin_properties(folder: Path) -> str:
    """A client's properties, with which the administrator's commands log in."""
    return f"""\
# The administrator: any command of sparklog with --command-config THIS_FILE.
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config={_MODULES}.plain.PlainLoginModule required \\
  username="{ADMIN}" password="{_secret(folder, ADMIN)}";
ssl.truststore.location={folder / AUTHORITY_FILE}
ssl.truststore.type=PEM
"""


def client_properties() -> str:
    """A client's properties, which a user completes."""
    return f"""\
# A user of the cluster. Complete it: the path of {AUTHORITY_FILE} on your machine, your name, and your
# password, which the administrator has set with: sparklog users add NAME --mechanism SCRAM-SHA-512
# Spark's options have these names with "kafka." before each.
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config={_MODULES}.scram.ScramLoginModule required username="NAME" password="PASSWORD";
ssl.truststore.location=/PATH/TO/{AUTHORITY_FILE}
ssl.truststore.type=PEM
"""


def secrets_properties(of_admin: str, of_zookeeper: str) -> str:
    return f"""\
# Passwords, to which the other files refer.
{ADMIN}={of_admin}
{ZOOKEEPER}=sparklog:{of_zookeeper}
"""


def _secret(folder: Path, key: str) -> str:
    return f"${{file:{folder / SECRETS_FILE}:{key}}}"
