"""What all requests of the controller have in common: who may speak, and whom it means."""

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode


def judge(call: Call, controller_epoch: int, broker_epoch: int) -> ErrorCode | None:
    """The request's error, or None if it was ended without an answer.

    A broker listens before it registers, and the controller may speak before the broker has learned which
    epoch it got. It cannot tell then whether it is meant, or an earlier incarnation at the same address. An
    error would be final: the controller would take it for the word of another incarnation and never say
    again who leads here. Over a closed connection it tries again.
    """
    if not call.broker.replicas.knows_its_epoch:
        call.exchange.close()
        return None
    return call.broker.replicas.accept_controller(controller_epoch, broker_epoch)
