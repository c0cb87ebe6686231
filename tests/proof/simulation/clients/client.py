"""What every simulated client does: it finds the leader of its partition, and asks again if that was wrong.

Clients speak Kafka's protocol to the broker that they believe to lead. Any broker answers for metadata.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from simulation.machines.network import Call, Network
from simulation.recorder import Recorder, SentBatch
from simulation.schedule import US_PER_MS, Process, Schedule, dice
from simulation.story import Story
from simulation.witness import Witness
from sparklog.model.ids import NO_TOPIC_ID, TopicPartition
from sparklog.wire.messages.discovery.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

RETRY_MS: Final = 120
CALL_TIMEOUT_MS: Final = 1_500
PRODUCE_TIMEOUT_MS: Final = 1_000


@dataclass(slots=True)
class Workplace:
    """What all clients share. ``hosts`` are what bootstrapping tells a real client."""

    schedule: Schedule
    network: Network
    witness: Witness
    story: Story
    hosts: tuple[str, ...]
    seed: int
    recorder: Recorder
    leads_in: Callable[[str, TopicPartition], int]
    """The epoch in which the broker at an address leads a partition, as it knows itself; -1: it does not."""

    def acknowledged(self, batch: SentBatch, base_offset: int) -> None:
        """No answer tells in which epoch its leader is, and the client may know of a later one."""
        truth = self.witness.truths.get(batch.topic_partition)
        if truth is not None:
            batch.leader_epoch = truth.epoch_of(batch.entry)
        self.recorder.end(batch, "ok", base_offset)


class Client:
    """Finds the leader of its partition."""

    def __init__(self, place: Workplace, name: str, topic_partition: TopicPartition) -> None:
        self.name = name
        self.topic_partition = topic_partition
        self.process = Process(place.schedule, name)
        self._place = place
        self._draw = dice(place.seed, name)
        self._leader: str | None = None
        self._leader_epoch = -1
        self._hosts: dict[int, str] = {}
        self._is_asking = False
        self._topic_id = NO_TOPIC_ID

    def start(self) -> None:
        self.process.soon(self.go_on)

    def go_on(self) -> None:
        raise NotImplementedError

    def topic_was_made_anew(self) -> None:
        """The topic of this name is another one than before."""

    def later(self, delay_ms: float, action: Callable[[], None]) -> None:
        self._place.schedule.after(int(delay_ms * US_PER_MS), self.process, action)

    def call(
        self,
        host: str,
        message: Any,
        on_response: Callable[[Any], None],
        on_failure: Callable[[OSError], None],
    ) -> Call | None:
        return self._place.network.call(
            self.process,
            self.name,
            host,
            message,
            timeout_ms=CALL_TIMEOUT_MS,
            on_response=on_response,
            on_failure=on_failure,
            is_bound=True,
        )

    def find_leader(self) -> None:
        """Ask some broker; ``go_on`` follows."""
        if self._is_asking:
            return
        self._is_asking = True
        self._leader = None
        topic = MetadataRequestTopic(name=self.topic_partition.topic)
        request = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        self.call(self._draw.choice(self._place.hosts), request, self._found, lambda error: self._not_found())

    def _found(self, response: MetadataResponse) -> None:
        hosts = self._hosts = {broker.node_id: broker.host for broker in response.brokers}
        for topic in response.topics:
            if topic.topic_id not in (NO_TOPIC_ID, self._topic_id):
                known, self._topic_id = self._topic_id, topic.topic_id
                if known != NO_TOPIC_ID:
                    self.topic_was_made_anew()
            for partition in topic.partitions:
                if partition.partition_index == self.topic_partition.partition:
                    self._leader = hosts.get(partition.leader_id)
                    self._leader_epoch = partition.leader_epoch
        if self._leader is None:
            self._not_found()
            return
        self._is_asking = False
        self.go_on()

    def _not_found(self) -> None:
        self._is_asking = False
        self.later(RETRY_MS, self.find_leader)
