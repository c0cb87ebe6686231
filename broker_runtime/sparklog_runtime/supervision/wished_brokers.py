"""What is wished of this application's brokers, as the controller's nodes say.

A broker whose wish is another than to serve is stopped in order, and not launched again until it is wished to
serve. ``starts`` counts how often a start was asked for: a greater one is obeyed at once, also by a broker
that would have waited after failed starts.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sparklog.core.controller.state.applications import HostedBroker
from sparklog.core.controller.state.wishes import Wish, WishedBroker
from sparklog.model.ids import BrokerId
from sparklog_runtime.supervision.id_assignment import IdAssignment
from sparklog_runtime.supervision.slots import Slot, hosted_of


@dataclass(slots=True)
class WishedBrokers:
    """A broker without a node is to serve. The supervisor's lock guards this."""

    ids: IdAssignment
    wished: dict[int, WishedBroker] = field(default_factory=dict)

    def of(self, broker_id: int) -> WishedBroker:
        return self.wished.get(broker_id, WishedBroker())

    def serves(self, broker_id: int) -> bool:
        return self.of(broker_id).wish is Wish.serving

    def to_serve(self) -> list[int]:
        return [broker_id for broker_id in self.ids.ids if self.serves(broker_id)]

    def note(self, wished: Mapping[int, WishedBroker]) -> bool:
        """Whether anything has changed."""
        known = self.ids.ids
        news = {one: found for one, found in wished.items() if one in known and self.of(one) != found}
        self.wished.update(news)
        return bool(news)

    def may_run(self, slot: Slot, slots: Collection[Slot]) -> bool:
        """Whether the slot's broker is to serve. Slots whose broker is not known yet take what is left to
        serve, the first ones.
        """
        broker_id = self.id_of(slot)
        if broker_id is not None:
            return self.serves(broker_id)
        known = {self.id_of(one) for one in slots}
        left = sum(one not in known for one in self.to_serve())
        unknown = [one.plan.slot for one in slots if self.id_of(one) is None]
        return unknown.index(slot.plan.slot) < left

    def are_registered(self, slots: Collection[Slot]) -> bool:
        """Whether all serve that are to serve."""
        running = [slot.process for slot in slots if self.may_run(slot, slots)]
        return all(process is not None and process.is_registered for process in running)

    def id_of(self, slot: Slot) -> int | None:
        return self.ids.id_of(slot.plan.slot) if slot.process is None else slot.process.broker_id

    def starts_of(self, slot: Slot) -> int:
        broker_id = self.id_of(slot)
        return 0 if broker_id is None else self.of(broker_id).starts

    def hosted(self, slots: Collection[Slot]) -> list[HostedBroker]:
        """How each broker is that has had a process, or stays stopped; by broker id."""
        found = {
            slot.process.broker_id: hosted_of(slot, self.of(slot.process.broker_id).wish)
            for slot in slots
            if slot.process is not None
        }
        for broker in map(BrokerId, self.ids.ids):
            if broker not in found and not self.serves(broker):
                wished = self.of(broker)
                found[broker] = HostedBroker(broker, wished.wish.value, starts=wished.starts)
        return [found[broker] for broker in sorted(found)]
