"""The identity of an idempotent producer: an id and an epoch, which any broker gives.

A producer that starts over names an identity, or none. librdkafka names its own, KIP-360's way to the next
epoch; @platformatic/kafka always names 0/0, which is another producer's; a faulty client names an id that
nobody has. The brokers give a fresh id in each case. A producer asks one broker after the other until one
answers. An answer that arrives after the producer gave up on it leaves an id that no producer has.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from simulation.schedule import dice
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from simulation.clients.client import Workplace
    from simulation.clients.idempotent_producers import Producer

EPOCHS_NAMED: Final = (0, 1, 32_766)
UNKNOWN_ID: Final = 1_000_000
"""More than a run gives."""

ASK_AGAIN_MS: Final = 120
NO_ID: Final = -1


class ProducerIdentity:
    """``on_known`` is called whenever there is an id."""

    def __init__(self, place: "Workplace", producer: "Producer", on_known: Callable[[], None]) -> None:
        self.producer_id = NO_ID
        self.epoch = NO_ID
        self.is_known = False
        self._place = place
        self._producer = producer
        self._on_known = on_known
        self._draw = dice(place.seed, f"{producer.name} asks who it is")
        self._questions = 0
        """A crash begins another: whoever is answered then is no more."""

    def __str__(self) -> str:
        return f"{self.producer_id}:{self.epoch}" if self.epoch else str(self.producer_id)

    def ask(self) -> None:
        """For an id, as somebody whom nobody knows."""
        self.is_known = False
        self.producer_id, self.epoch = NO_ID, NO_ID
        self._questions += 1
        self._ask(self._questions, (NO_ID, NO_ID))

    def start_over(self) -> None:
        """For another id. A producer that has none yet continues to ask for its first."""
        if not self.is_known:
            return
        named = self._named()
        self.is_known = False
        self._questions += 1
        self._ask(self._questions, named)

    def _named(self) -> tuple[int, int]:
        """The identity that the next request names: its own, another's, nobody's, or none."""
        others = (self._draw.randrange(self.producer_id + 1), self._draw.choice(EPOCHS_NAMED))
        nobodys = (UNKNOWN_ID + self._draw.randrange(9), self._draw.choice(EPOCHS_NAMED))
        return self._draw.choice(((self.producer_id, self.epoch), others, nobodys, (NO_ID, NO_ID)))

    def _ask(self, question: int, named: tuple[int, int]) -> None:
        if question != self._questions:
            return
        request = InitProducerIdRequest(producer_id=named[0], producer_epoch=named[1])
        host = self._draw.choice(self._place.hosts)

        def again() -> None:
            if question == self._questions:
                self._place.witness.marks.reach("a producer asked again for its id")
                self._producer.later(ASK_AGAIN_MS, lambda: self._ask(question, named))

        def answered(response: InitProducerIdResponse) -> None:
            if response.error_code is not ErrorCode.none:
                again()
            elif question == self._questions:
                self._learn(host, response, named)

        self._producer.call(host, request, answered, lambda error: again())

    def _learn(self, host: str, response: InitProducerIdResponse, named: tuple[int, int]) -> None:
        if named[0] != NO_ID:
            self._place.witness.marks.reach("a producer named an id and got a fresh one")
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        self.is_known = True
        self._place.story.tell(self._producer.name, f"is told by {host} that it is producer {self}")
        self._place.witness.identities.on_answer(
            self._producer.process_name, response.producer_id, response.producer_epoch
        )
        self._on_known()
