"""Operators: they ask for operations on brokers, and the supervisors obey what is wished. Some also move
partitions with a throttle, by dice of their own.

A request is sent again, to the other controller too, until it is answered; it carries an id of its own, so
that what is sent again begins nothing. Once faults are over, operators wait for what is under way, cancel
what cannot end, and have every broker started that is stopped.
"""

from collections.abc import Callable
from typing import Final

from simulation.cluster import Cluster
from simulation.invariants.operations.throttle_rules import RATES
from simulation.machines.broker import SimulatedBroker
from simulation.plans.wishes import WishPlan
from simulation.schedule import US_PER_MS, Process, dice
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.state.operations import Operation
from sparklog.core.controller.state.wishes import Wish
from sparklog.model.ids import BrokerId
from sparklog.wire.commands.operation_requests import CANCEL
from sparklog.wire.messages.admin.operate_brokers import OperateBrokersRequest

OBEY_MS: Final = 40
"""How often a supervisor looks at the wishes."""

CANCEL_AFTER_MS: Final = 15_000
"""How long operators wait, once faults are over, for an operation that is under way."""

MOVING: Final = (OperationKind.drain, OperationKind.fill)
THROTTLES: Final = (1_000, 4_000, 100_000)
"""Bytes a second: the lower ones take seconds for what the logs of a run have."""

STORED: Final = 0.15
"""How often a rate is set as Kafka's tools do it, instead of a move."""
ACTIONS: Final[tuple[OperationKind | None, ...]] = (
    *[OperationKind.restart] * 3,
    *[OperationKind.stop] * 2,
    *[OperationKind.start] * 2,
    *[OperationKind.drain] * 3,
    OperationKind.fill,
    OperationKind.remove,
    None,
)
"""None is a cancellation."""


class Operators:
    """All of them, and the brokers' supervisors."""

    def __init__(self, cluster: Cluster, plan: WishPlan) -> None:
        self._draw = dice(cluster.plan.seed, "operators")
        self._plan = plan
        self._cluster = cluster
        self._move_draw = dice(cluster.plan.seed, "moves with a throttle")
        self._rules = cluster.witness.operations
        self._throttles = cluster.throttles
        self._schedule = cluster.schedule
        self._process = Process(cluster.schedule, "operators")
        self._brokers = tuple(machine.broker_id for machine in cluster.machines.values())
        self._requests = 0
        self._calm_since_ms: int | None = None
        self._is_asking = False
        """Whether a request of the time after the faults is under way."""

    def start(self) -> None:
        self._process.soon(self._obey)
        self._ask_later()
        if self._plan.throttles:
            self._move_later()

    def calm(self) -> None:
        """Nobody asks for more; ``unrest`` has everything put back."""
        self._calm_since_ms = self._schedule.now_ms

    def unrest(self) -> str | None:
        """What is left to do, which this does."""
        self._throttles.look_at_rest(self._schedule.now_ms)
        running = self._rules.running
        if running:
            waited_ms = self._schedule.now_ms - (self._calm_since_ms or 0)
            if waited_ms > CANCEL_AFTER_MS:
                self._ask_once(self._cancellation(running[0]))
            return f"{running[0]} is under way"
        away = [broker for broker in self._brokers if self._rules.wish(broker) is not Wish.serving]
        if away:
            self._ask_once(self._request(OperationKind.start, away))
            return f"brokers {away} are not to serve"
        return next(filter(None, map(self._unrest_of_throttles, self._cluster.brokers.values())), None)

    def _unrest_of_throttles(self, broker: SimulatedBroker) -> str | None:
        """Whether a broker limits what no operation asks it to limit."""
        if broker.body is None:
            return None
        throttles, own = broker.body.parts.throttles, broker.machine.broker_id
        for name, side in zip(RATES, (throttles.leader, throttles.follower), strict=True):
            rate, topics = side._throttle.rate, sorted(side._topics)
            if rate != self._throttles.rate(own, name) or topics:
                return f"broker {own} has the {name} {rate}, and throttles replicas of {topics}"
        return None

    # -- supervisors

    def _obey(self) -> None:
        for machine in self._cluster.machines.values():
            if self._rules.wish(machine.broker_id) is Wish.serving:
                self._cluster.launch(machine.host)
            else:
                self._cluster.stop(machine)
        self._schedule.after(OBEY_MS * US_PER_MS, self._process, self._obey)

    # -- requests

    def _ask_later(self) -> None:
        pause_ms = self._draw.expovariate(1 / self._plan.ask_every_ms)
        self._schedule.after(int(pause_ms * US_PER_MS), self._process, self._ask)

    def _ask(self) -> None:
        if self._calm_since_ms is not None:
            return
        self._ask_later()
        request = self._drawn()
        if request is not None:
            self._send(request)

    def _drawn(self) -> OperateBrokersRequest | None:
        action = self._draw.choice(ACTIONS)
        brokers = self._draw.sample(self._brokers, self._draw.choice((1, 1, 1, 2)))
        running = self._rules.running
        match action:
            case None:
                return self._cancellation(self._draw.choice(running)) if running else None
            case OperationKind.remove:
                stopped = [one for one in self._brokers if self._rules.wish(one) is not Wish.serving]
                return self._request(action, stopped[:1] or brokers)
            case OperationKind.restart if self._draw.random() < 0.5:
                return self._request(action, [], is_all=True)
            case _:
                return self._request(action, brokers)

    def _move_later(self) -> None:
        pause_ms = self._move_draw.expovariate(1 / self._plan.ask_every_ms)
        self._schedule.after(int(pause_ms * US_PER_MS), self._process, self._move)

    def _move(self) -> None:
        if self._calm_since_ms is not None:
            return
        self._move_later()
        draw, administrator = self._move_draw, self._cluster.administrator
        if draw.random() < STORED:
            rates = dict.fromkeys(RATES, str(draw.choice(THROTTLES)))
            administrator.configure_broker(draw.choice(self._brokers), rates)
        else:
            administrator.move_with_throttle(draw.random(), draw.choice(THROTTLES))

    def _cancellation(self, operation: Operation) -> OperateBrokersRequest:
        return OperateBrokersRequest(action=CANCEL, operation=operation.id)

    def _request(
        self, action: OperationKind, brokers: list[BrokerId], *, is_all: bool = False
    ) -> OperateBrokersRequest:
        self._requests += 1
        return OperateBrokersRequest(
            action=action.value,
            brokers=list(brokers),
            is_all=is_all,
            request=f"request-{self._requests}",
            accepts_unavailable=self._draw.random() < 0.1,
            throttle=self._draw.choice((0, 100_000)) if action in MOVING else 0,
        )

    def _ask_once(self, request: OperateBrokersRequest) -> None:
        if not self._is_asking:
            self._is_asking = True
            self._send(request, finally_=self._answered)

    def _answered(self) -> None:
        self._is_asking = False

    def _send(self, request: OperateBrokersRequest, finally_: Callable[[], None] = lambda: None) -> None:
        if request.action in MOVING and self._cluster.administrator.has_damage:
            return  # replicas that stay might be damaged ones: more than a move promises to survive
        self._cluster.administrator.operate(request, finally_)
