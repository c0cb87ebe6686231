"""The fence against replaced controllers, and against requests to an earlier incarnation of this broker."""

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_BROKER_EPOCH, BrokerEpoch
from sparklog.model.ports import Guard


class ControllerFence:
    """The epochs by which a request of a controller is judged."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
        """The epoch of this broker's registration; -1 before it."""
        self.controller_epoch = -1
        """The epoch of the latest controller that sent a request; never falls."""

    @property
    def knows_its_epoch(self) -> bool:
        """Whether this broker has received the epoch of its registration."""
        return self.broker_epoch >= 0

    def accept_controller(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH, or NONE; ``broker_epoch`` -1 means any incarnation."""
        with self._guard:
            if controller_epoch < self.controller_epoch:
                return ErrorCode.stale_controller_epoch
            if broker_epoch not in (-1, self.broker_epoch):
                return ErrorCode.stale_broker_epoch
            self.controller_epoch = controller_epoch
            return ErrorCode.none
