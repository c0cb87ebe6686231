"""The groups of a run: whose members come and go until nothing goes wrong any more, and then come to rest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from simulation.clients.client import Workplace
from simulation.clients.groups.keeper import Keeper
from simulation.clients.groups.member import GroupPlace, Member
from simulation.clients.groups.reader import OffsetReader
from simulation.invariants.groups import GroupRules
from simulation.plans.groups import Churn, GroupPlan, member_name
from simulation.schedule import US_PER_MS, dice
from sparklog.model.ids import TopicPartition

AWAY_MS: Final = (50, 1_200)
"""How long a place in a group is empty after its member has died or left."""

STALL_SHARES: Final = (0.5, 1.2, 2.5)
"""How long a member stands still, in session time-outs."""


@dataclass(slots=True)
class Seat:
    """A place in a group: one process, or two with the same instance id."""

    name: str
    instance_id: str | None
    processes: list[Member] = field(default_factory=list)
    lives: int = 0

    @property
    def member(self) -> Member | None:
        """Its last process, if that lives."""
        return self.processes[-1] if self.processes and self.processes[-1].process.is_alive else None


class Crowd:
    """One group with its members, its reader, and a keeper beside it."""

    def __init__(self, place: Workplace, group: GroupPlace, number: int) -> None:
        self.group = group
        self._place = place
        self._draw = dice(place.seed, f"churn of {group.group_id}")
        self._seats = [
            Seat(
                member_name(number, seat),
                f"instance-{number}-{seat}" if seat < group.plan.statics else None,
            )
            for seat in range(group.plan.members)
        ]
        self._reader = OffsetReader(place, f"offsets-{number}", group.group_id, group.partitions)
        kept = f"kept-{number}"
        group.rules.know(kept)
        self._keeper = Keeper(place, f"keeper-{number}", kept, group.partitions[0], group.rules)
        self._healed_us = -1

    def start(self) -> None:
        for seat in self._seats:
            self._fill(seat)
        self._reader.start()
        self._keeper.start()
        self._churn_later()

    def calm(self) -> None:
        """Nothing goes wrong any more: every place is taken, by one process that is polite."""
        self._healed_us = self._place.schedule.now_us
        for seat in self._seats:
            self._fill(seat)
            for member in seat.processes:
                member.is_rude = member.is_settled = False
                member.is_patient = True

    def unrest(self) -> str | None:
        """What is still missing to rest.

        While nothing is missing, its clients write nothing. A member that leaves later, as its session ends,
        gives the others new shares, in which they must be able to commit again.
        """
        trouble = self._trouble()
        for client in (self._keeper, *self._members()):
            client.is_hushed = trouble is None
        return trouble

    def _trouble(self) -> str | None:
        for client in (self._reader, self._keeper):
            if client.answered_us < self._healed_us:
                return f"{client.name} is not told what is committed"
        members = list(self._members())
        for member in members:
            if not member.is_settled or not member.has_share:
                return f"{member.process.name} has no share in which it could commit"
        generations = {member.me.generation for member in members}
        if len(generations) > 1:
            return f"members of {self.group.group_id} are in generations {sorted(generations)}"
        shared = [where for member in members for where in member.share]
        if sorted(shared) != sorted(self.group.partitions):
            return f"members of {self.group.group_id} share {sorted(shared)}"
        return None

    def _members(self) -> Iterator[Member]:
        for seat in self._seats:
            yield from (member for member in seat.processes if member.process.is_alive)

    # ---- coming and going ----------------------------------------------------------------------------------

    def _fill(self, seat: Seat) -> None:
        if seat.member is None or seat.member.is_done:
            self._begin(seat)

    def _begin(self, seat: Seat) -> None:
        seat.lives += 1
        member = Member(self._place, self.group, seat.name, seat.lives, seat.instance_id)
        seat.processes = [one for one in seat.processes if one.process.is_alive]
        seat.processes.append(member)
        self._place.story.tell(member.process.name, "begins")
        member.start()

    def _churn_later(self) -> None:
        delay_ms = self._draw.expovariate(1 / self.group.plan.churn_ms)
        self._place.schedule.after(int(delay_ms * US_PER_MS), None, self._churn)

    def _churn(self) -> None:
        if self._healed_us >= 0:
            return
        seat, kind = self._draw.choice(self._seats), self._draw.choice(self.group.plan.churn)
        away_ms, share = self._draw.uniform(*AWAY_MS), self._draw.choice(STALL_SHARES)
        if seat.member is not None:
            self._place.story.tell(seat.member.process.name, kind)
            self._do(kind, seat, seat.member, away_ms, share)
        self._churn_later()

    def _do(self, kind: Churn, seat: Seat, member: Member, away_ms: float, share: float) -> None:
        after = self._place.schedule.after
        match kind:
            case "leave" | "die":
                if kind == "leave":
                    member.leave()
                else:
                    member.end()
                after(int(away_ms * US_PER_MS), None, lambda: self._fill(seat))
            case "stall":
                member.process.pause()
                stall_ms = share * self.group.plan.session_timeout_ms
                after(int(stall_ms * US_PER_MS), None, member.process.resume)
            case "twin":
                if seat.instance_id is not None:
                    self._place.witness.marks.reach("a twin of a static member began")
                    self._begin(seat)


def crowds_of(
    place: Workplace, plans: Sequence[GroupPlan], partitions: Sequence[TopicPartition], rules: GroupRules
) -> list[Crowd]:
    """The groups of a plan, all of which read ``partitions``."""
    crowds = []
    for number, plan in enumerate(plans):
        group = GroupPlace(f"group-{number}", plan, tuple(partitions), rules)
        rules.know(group.group_id)
        crowds.append(Crowd(place, group, number))
    return crowds
