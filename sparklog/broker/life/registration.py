"""A broker becomes visible to its cluster."""

from sparklog.broker.disks.log_dirs import LogDirs
from sparklog.model.cluster_facts import Broker
from sparklog.model.ids import BrokerEpoch
from sparklog.model.zookeeper import ZooKeeper
from sparklog.zookeeper.broker_registration import register_broker


def register(
    zookeeper: ZooKeeper, broker: Broker, log_dirs: LogDirs, *, boot_id: str, host_id: str
) -> BrokerEpoch:
    """Make a broker visible under a fresh broker epoch; refused while a foreign holder of its id lives.

    After LogDirectoryError the registration stays until the session ends; the broker must not serve
    meanwhile.
    """
    epoch = register_broker(
        zookeeper,
        broker,
        log_dirs.identities(),
        boot_id=boot_id,
        host_id=host_id,
        offline_directories=len(log_dirs.offline),
    )
    log_dirs.forget_suspects()
    return epoch
