"""Bugs of access rules that seeds with principals meet: rules that are old, rights that are not asked, names
that are everybody's.
"""

from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.handlers import fetch
from sparklog.broker.handlers.writes import end_write
from sparklog.core.controller.acls import acl_changes
from sparklog.core.security.authorizer import Authorizer
from sparklog.core.security.rule_book import RuleBook
from sparklog.core.security.rule_nodes import CHANGES
from sparklog.core.security.rules import PatternType
from sparklog.core.write_coordinator import agreements
from sparklog.core.write_coordinator.records import AgreementKey
from sparklog.core.write_coordinator.requests import Claim
from sparklog.model.zookeeper import SessionEvent
from sparklog.wire.access import judging, partly
from sparklog.wire.access.question import Admitted, Denied
from sparklog.zookeeper.rule_watch import RuleWatch

HASTE: Final = Hunt(kinds=("kill controller", "expire session", "delay answers"), principals=1.0)
CUTS: Final = Hunt(kinds=("cut zookeeper",), principals=1.0)
NAMES: Final = Hunt(kinds=("kill broker", "expire session", "delay answers"), principals=1.0, names=1.0)


def _denied_writes_are_appended(switch: Switch) -> None:
    """A denied batch goes on to the leader's log; its answer says what it should say."""

    def produce(asked: Any) -> Any:
        verdict = partly.PARTLY["Produce"](asked)
        if not isinstance(verdict, Denied) or asked.request.acks == 0:
            return verdict
        return Admitted(asked.request, lambda response: verdict.response)

    switch.instead(judging, "PARTLY", {**partly.PARTLY, "Produce": produce})


def _verdicts_are_kept_without_their_principal(switch: Switch) -> None:
    """A broker remembers what it said of a resource until a rule changes, and says it to everybody."""
    said: dict[tuple[Any, ...], bool | None] = {}

    def verdict(original: Any) -> Any:
        def mutated(self: RuleBook, principal: str, host: str, *question: Any) -> bool | None:
            key = (id(self), *question)
            if key not in said:
                said[key] = original(self, principal, host, *question)
            return said[key]

        return mutated

    def put(original: Any) -> Any:
        def mutated(self: RuleBook, *change: Any) -> None:
            original(self, *change)
            said.clear()

        return mutated

    switch.method(RuleBook, "verdict", verdict)
    switch.method(RuleBook, "put", put)


def _fetches_are_judged_as_they_come(switch: Switch) -> None:
    """What a fetch may read is not asked again after it has waited for records."""
    switch.instead(fetch, "_without_what_is_forbidden_now", lambda call, request, results: results)


def _rules_go_with_the_connection(switch: Switch) -> None:
    """A server that is cut off from ZooKeeper lets go of the rules that it cannot check any more."""

    def init(original: Any) -> Any:
        def mutated(self: RuleWatch, zookeeper: Any, authorizer: Authorizer, *more: Any) -> None:
            original(self, zookeeper, authorizer, *more)

            def forget(event: SessionEvent) -> None:
                if event == "suspended":
                    authorizer.book = RuleBook()

            zookeeper.on_session(forget)

        return mutated

    switch.method(RuleWatch, "__init__", init)


def _rules_are_kept_over_a_cut(switch: Switch) -> None:
    """A server that is connected again goes on with the rules that it has, and follows what is announced from
    then on.
    """
    have_read: set[RuleWatch] = set()

    def read_whole(original: Any) -> Any:
        def mutated(self: RuleWatch) -> None:
            if self not in have_read:
                original(self)
                have_read.add(self)
                return
            for kind in PatternType:
                self._last[kind] = max(self._notifications(kind), default="")

        return mutated

    switch.method(RuleWatch, "_read_whole", read_whole)


def _changed_prefixes_are_not_announced(switch: Switch) -> None:
    """The controller writes rules of a prefix without a notification."""

    def operations(original: Any) -> Any:
        def mutated(self: Any) -> Any:
            return [
                one for one in original(self) if not one.path.startswith(f"{CHANGES[PatternType.prefixed]}/")
            ]

        return mutated

    switch.method(acl_changes._Changes, "operations", operations)


def _agreements_have_no_principal(switch: Switch) -> None:
    """The first value of a name counts for all, whoever put it."""
    switch.instead(agreements, "AgreementKey", lambda name, principal: AgreementKey(name))


def _anybody_ends_a_write(switch: Switch) -> None:
    """Whose a name is, is asked of those who open a write alone."""
    switch.instead(end_write, "claim_of", lambda call, app: Claim())


PRINCIPALS: Final = (
    Mutant(
        "denied-writes-are-appended",
        "KIP-11",
        "who may not write is told so, and the batch is in the log",
        5,
        _denied_writes_are_appended,
        HASTE,
        is_quick=True,
    ),
    Mutant(
        "verdicts-are-kept-without-their-principal",
        "a cache of verdicts",
        "the rules of one team are applied to the other",
        5,
        _verdicts_are_kept_without_their_principal,
        HASTE,
    ),
    Mutant(
        "fetches-are-judged-as-they-come",
        "KIP-11",
        "a reader whose right was taken away gets what is written while its fetch waits",
        20,
        _fetches_are_judged_as_they_come,
        HASTE,
    ),
    Mutant(
        "rules-go-with-the-connection",
        "KIP-11",
        "nobody may do anything at a broker that does not reach ZooKeeper for a moment",
        10,
        _rules_go_with_the_connection,
        CUTS,
    ),
    Mutant(
        "rules-are-kept-over-a-cut",
        "KIP-11",
        "a right that was taken away while a broker was cut off stays with its user",
        10,
        _rules_are_kept_over_a_cut,
        CUTS,
    ),
    Mutant(
        "changed-prefixes-are-not-announced",
        "KIP-290",
        "rules of prefixes bind a broker after its next start",
        10,
        _changed_prefixes_are_not_announced,
        HASTE,
    ),
    Mutant(
        "agreements-have-no-principal",
        "possible hole",
        "a team decides what another's batch read sees",
        5,
        _agreements_have_no_principal,
        NAMES,
    ),
    Mutant(
        "anybody-ends-a-write",
        "possible hole",
        "a team aborts what another writes, if it knows the name",
        10,
        _anybody_ends_a_write,
        NAMES,
    ),
)
