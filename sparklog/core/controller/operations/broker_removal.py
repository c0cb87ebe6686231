"""The removal of a drained broker: its settings and the proofs of its logs go, and the wish "removed" stays.

It is refused while the state of any partition names the broker, even as an eligible replica: its records may
be needed. A topic that is being deleted does not wait for a removed broker any more.
"""

from sparklog.core.controller.operations.operation_writes import OperationWrites
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.wishes import Wish
from sparklog.core.controller.state.znodes import broker_config_path, broker_path, incarnation_path
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId
from sparklog.model.zookeeper import ANY_VERSION, Create, Delete


def check_removal(image: ClusterImage, broker: BrokerId) -> None:
    """Raises KafkaError if the broker may not be removed."""
    problem = ""
    if broker in image.brokers:
        problem = f"broker {broker} serves; stop it with: sparklog brokers drain {broker}"
    elif image.wish(broker) not in (Wish.drained, Wish.stopped):
        problem = (
            f"broker {broker} may return, as its wish is to serve; drain it: sparklog brokers drain {broker}"
        )
    for partition, state in image.partitions():
        names = set(image.replicas_of(partition))
        if state is not None:
            names |= {*state.isr, *state.eligible}
        if broker in names:
            problem = (
                f"{partition} has a replica on broker {broker}, whose records may be needed; move it with: "
                f"sparklog brokers drain {broker}"
            )
            break
    if problem:
        raise KafkaError(ErrorCode.policy_violation, problem)


def remove(writes: OperationWrites, broker: BrokerId) -> None:
    """The registered brokers have just been read."""
    path = broker_path(broker)
    # Refused if it has registered meanwhile: this node exists then.
    writes.operations += [Create(path), Delete(path)]
    if broker in writes.image.registered:
        writes.operations.append(Delete(incarnation_path(broker), ANY_VERSION))
    if str(broker) in writes.image.broker_configs:
        writes.operations.append(Delete(broker_config_path(str(broker)), ANY_VERSION))
    writes.wish(broker, Wish.removed)
