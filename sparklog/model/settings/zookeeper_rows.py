"""The settings of the connection to ZooKeeper and of its nodes' grants, with Kafka's names; the digest is
sparklog's own.
"""

from typing import Final

from sparklog.model.settings.setting import Setting

SET_ACL: Final = "zookeeper.set.acl"
DIGEST: Final = "zookeeper.digest"
TLS: Final = "zookeeper.ssl.client.enable"
CLIENT_SOCKET: Final = "zookeeper.clientCnxnSocket"
NETTY: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"

ZOOKEEPER_SETTINGS: Final = (
    Setting(DIGEST, "string", "",
            "`USER:PASSWORD` that brokers, controller and commands show to ZooKeeper, as a reference. "
            "Sparklog's own."),
    Setting(SET_ACL, "bool", False,
            "Whether the cluster alone may change the nodes that it creates in ZooKeeper, and read those "
            "with credentials. Needs zookeeper.digest."),
    Setting(TLS, "bool", False, "Whether connections to ZooKeeper speak TLS, at its secureClientPort."),
    Setting(CLIENT_SOCKET, "string", "", "Accepted: what TLS needs in Java.", choices=("", NETTY)),
    Setting("zookeeper.ssl.keystore.location", "string", "",
            "File with the key and the certificates that are shown to ZooKeeper: PEM or PKCS12. The embedded "
            "ZooKeeper shows the same."),
    Setting("zookeeper.ssl.keystore.password", "string", "", "Password of PKCS12, as a reference."),
    Setting("zookeeper.ssl.keystore.type", "string", "", "Accepted; the content decides."),
    Setting("zookeeper.ssl.truststore.location", "string", "",
            "File with the authorities of ZooKeeper's certificates; without it the system's count."),
    Setting("zookeeper.ssl.truststore.password", "string", "", "Password of PKCS12, as a reference."),
    Setting("zookeeper.ssl.truststore.type", "string", "", "Accepted; the content decides."),
    Setting("zookeeper.ssl.protocol", "string", "TLSv1.2",
            "Accepted; zookeeper.ssl.enabled.protocols decides.", choices=("TLS", "TLSv1.2", "TLSv1.3")),
    Setting("zookeeper.ssl.enabled.protocols", "list", ("TLSv1.2", "TLSv1.3"), "Versions that are spoken.",
            pattern=r"TLSv1\.[23]"),
    Setting("zookeeper.ssl.cipher.suites", "list", (),
            "Cipher suites of TLS 1.2 by Java's names; empty for OpenSSL's choice.",
            pattern=r"[A-Za-z0-9_]+"),
    Setting("zookeeper.ssl.endpoint.identification.algorithm", "string", "HTTPS",
            "Whether ZooKeeper's certificate must name its host; empty: any host will do.",
            choices=("", "HTTPS", "https")),
)  # fmt: skip

ZOOKEEPER_NAMES: Final = frozenset(one.name for one in ZOOKEEPER_SETTINGS)
