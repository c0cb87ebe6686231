"""Readers that begin in the middle of a log, again and again."""

from simulation.clients.consumers import Consumer


class Rereader(Consumer):
    """Reads a few times from anywhere in what it has seen so far, then goes elsewhere."""

    _known_end = 0
    _reads = 0

    def topic_was_made_anew(self) -> None:
        self._known_end = 0
        super().topic_was_made_anew()

    def go_on(self) -> None:
        self._known_end = max(self._known_end, self.offset)
        self._reads += 1
        if self._reads % 5 == 0 and self._known_end:
            self.seek(self._draw.randrange(self._known_end))
            self._place.witness.marks.reach("a reader began in the middle of a log")
        super().go_on()
