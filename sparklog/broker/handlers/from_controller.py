"""The check of every request of a controller: is it the present controller, and is this incarnation meant?"""

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode


def judge(call: Call, controller_epoch: int, broker_epoch: int) -> ErrorCode | None:
    """The request's error, or None if the connection was closed instead of an answer.

    A broker listens before it registers, and a request may arrive before the broker knows its own epoch. It
    cannot tell then whether it is meant, or an earlier incarnation at the same address. An error would be
    final: the controller would take it for the answer of another incarnation, and never send the roles again.
    After a closed connection it sends the request again.
    """
    if not call.broker.fence.knows_its_epoch:
        call.exchange.close()
        return None
    return call.broker.fence.accept_controller(controller_epoch, broker_epoch)
