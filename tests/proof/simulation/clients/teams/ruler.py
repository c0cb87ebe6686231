"""Changes access rules over and over, by way of brokers, which forward that to the controller.

Now and then somebody of a team asks for a rule, in the team's name: nobody may grant that.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from simulation.clients.client import CALL_TIMEOUT_MS, Workplace
from simulation.invariants.access.rule_history import RuleHistory
from simulation.invariants.access.team_rules import FORBIDDEN, Given
from simulation.invariants.invariant import Violation
from simulation.plans.principals import TEAMS
from simulation.schedule import US_PER_MS, Process, dice
from sparklog.core.security.rules import Permission
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.security.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from sparklog.wire.messages.security.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

INTRUSIONS: Final = 0.1
"""Share of the requests that come from a team."""

CREATIONS: Final = {Permission.allow: 0.7, Permission.deny: 0.35}
"""How often a change of a rule creates it, and does not delete it: mostly, most is allowed."""

REFUSED: Final = ErrorCode.cluster_authorization_failed


class Ruler:
    """``name`` is its address, by which nobody takes it for a team's client. ``rules`` are those that it
    creates and deletes.
    """

    def __init__(
        self,
        place: Workplace,
        number: int,
        history: RuleHistory,
        rules: Sequence[Given],
        *,
        every_ms: float,
    ) -> None:
        self.name = f"ruler-{number}"
        self.process = Process(place.schedule, self.name)
        self.is_stopping = False
        self._place = place
        self._history = history
        self._rules = rules
        self._every_ms = every_ms
        self._draw = dice(place.seed, self.name)

    def start(self) -> None:
        delay_ms = self._draw.expovariate(1 / self._every_ms)
        self._place.schedule.after(int(delay_ms * US_PER_MS), self.process, self._change)

    def _change(self) -> None:
        if self.is_stopping:
            return
        self.start()
        if self._draw.random() < INTRUSIONS:
            number = self._draw.randrange(len(TEAMS))
            self._intrude(f"{TEAMS[number]}-{self.name}", FORBIDDEN[number], lane=1 + number)
            return
        some = self._draw.sample(self._rules, self._draw.choice((1, 1, 2)))
        permission = some[0].rule.permission
        some = [one for one in some if one.rule.permission is permission]
        if self._draw.random() < CREATIONS[permission]:
            self._create(some)
        else:
            self._delete(some)

    # -- changes

    def _create(self, some: list[Given]) -> None:
        self._history.asked_for.update((one.pattern, one.rule) for one in some)
        request = CreateAclsRequest(creations=[_creation(one) for one in some])

        def answered(sent_us: int, response: CreateAclsResponse) -> None:
            for one, result in zip(some, response.results, strict=True):
                self._note(one, "created", result.error_code)
                if result.error_code is ErrorCode.none:
                    self._must_have_had(one, is_there=True, since_us=sent_us)

        self._send(self.name, request, answered)

    def _delete(self, some: list[Given]) -> None:
        self._history.asked_away.update((one.pattern, one.rule) for one in some)
        request = DeleteAclsRequest(filters=[_filter(one) for one in some])

        def answered(sent_us: int, response: DeleteAclsResponse) -> None:
            for one, result in zip(some, response.filter_results, strict=True):
                self._note(one, "deleted", result.error_code)
                if result.error_code is ErrorCode.none:
                    self._must_have_had(one, is_there=False, since_us=sent_us)

        self._send(self.name, request, answered)

    def _intrude(self, origin: str, wish: Given, lane: int) -> None:
        request = CreateAclsRequest(creations=[_creation(wish)])

        def answered(_: int, response: CreateAclsResponse) -> None:
            for result in response.results:
                if result.error_code is ErrorCode.none:
                    raise Violation("RulesAreAskedFor", f"{origin} is told that it has created {wish}")
                if result.error_code is REFUSED:
                    self._place.witness.marks.reach("a team was refused a rule")

        self._send(origin, request, answered, lane=lane)

    def _note(self, one: Given, what: str, error: ErrorCode) -> None:
        self._place.story.tell(self.name, f"{error.name}: {one} {what}")
        if error is ErrorCode.none:
            self._place.witness.marks.reach("access rules were changed")
        elif error is REFUSED:
            raise Violation("DenialsHaveAReason", f"{self.name} may change rules, and is refused {one}")

    def _must_have_had(self, one: Given, *, is_there: bool, since_us: int) -> None:
        if not self._history.had((one.pattern, one.rule), is_there=is_there, since_us=since_us):
            state = "there" if is_there else "gone"
            raise Violation("AnsweredRulesAreMade", f"{self.name} is told that {one} is {state}; it is not")

    def _send(
        self, origin: str, request: Any, answered: Callable[[int, Any], None], *, lane: int = 0
    ) -> None:
        sent_us = self._place.schedule.now_us
        self._place.network.call(
            self.process,
            origin,
            self._draw.choice(self._place.hosts),
            request,
            timeout_ms=CALL_TIMEOUT_MS,
            on_response=lambda response: answered(sent_us, response),
            on_failure=lambda error: None,
            lane=lane,
        )


def _creation(one: Given) -> AclCreation:
    pattern, rule = one.pattern, one.rule
    return AclCreation(
        resource_type=pattern.resource,
        resource_name=pattern.name,
        resource_pattern_type=pattern.kind,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )


def _filter(one: Given) -> DeleteAclsFilter:
    pattern, rule = one.pattern, one.rule
    return DeleteAclsFilter(
        resource_type_filter=pattern.resource,
        resource_name_filter=pattern.name,
        pattern_type_filter=pattern.kind,
        principal_filter=rule.principal,
        host_filter=rule.host,
        operation=rule.operation,
        permission_type=rule.permission,
    )
