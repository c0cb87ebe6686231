"""Everybody of both teams, the rulers, and the auditors, who read all that is written."""

from collections import Counter

from simulation.clients.client import Workplace
from simulation.clients.consumers import Consumer
from simulation.clients.teams.name_user import NameUser
from simulation.clients.teams.ruler import Ruler
from simulation.clients.teams.team_reader import TeamReader
from simulation.clients.teams.team_writer import TeamWriter
from simulation.invariants.access.access_rules import AccessRules
from simulation.invariants.access.rights import DENIED
from simulation.invariants.access.team_rules import changing_rules
from simulation.invariants.invariant import Violation
from simulation.plans.principals import TEAMS, PrincipalPlan, team_topic
from simulation.schedule import dice
from sparklog.core.security.acl import AclOperation
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import ACKS_ALL


class TeamCrowd:
    def __init__(self, place: Workplace, plan: PrincipalPlan, rules: AccessRules) -> None:
        self._rules = rules
        self._place = place
        self._rulers = [
            Ruler(place, number, rules.history, changing_rules(plan), every_ms=plan.change_every_ms)
            for number in range(plan.rulers)
        ]
        self._writers: list[TeamWriter] = []
        self._readers: list[TeamReader] = []
        self.auditors: list[Consumer] = []
        for team, other in (TEAMS, reversed(TEAMS)):
            self._add(team, TopicPartition(team_topic(team), 0), TopicPartition(team_topic(other), 0))
        versions: Counter[str] = Counter()
        self._name_users = [
            NameUser(place, f"{team}-names-{number}", versions, every_ms=plan.use_every_ms)
            for team in TEAMS
            for number in range(plan.name_users)
        ]
        self._asked: dict[str, int] = {}
        """How often rules had changed when each writer sent its last batch."""

    def _add(self, team: str, own: TopicPartition, others: TopicPartition) -> None:
        place, rights = self._place, self._rules.rights
        draw = dice(place.seed, f"team {team}")
        second = draw.choice((0, 1, ACKS_ALL))
        for number, (where, acks) in enumerate(((own, ACKS_ALL), (own, second), (others, ACKS_ALL))):
            interval_ms = draw.choice((80.0, 200.0))
            name = f"{team}-writer-{number}"
            self._writers.append(TeamWriter(place, name, where, rights, acks=acks, interval_ms=interval_ms))
        self._readers += [
            TeamReader(place, f"{team}-reader-{number}", where) for number, where in enumerate((own, others))
        ]
        self.auditors.append(Consumer(place, f"auditor-{team}", own))

    def start(self) -> None:
        for ruler in self._rulers:
            ruler.start()
        for client in (*self._writers, *self._readers, *self.auditors):
            client.start()
        for user in self._name_users:
            user.start()

    def calm(self) -> None:
        """Nobody changes a rule any more; what was asked for may still come about."""
        for ruler in self._rulers:
            ruler.is_stopping = True

    def unrest(self) -> str | None:
        """What is left to do: all know the rules of now, and each writer has heard whether it may write."""
        for writer in self._writers:
            writer.is_stopping = True
        for user in self._name_users:
            user.is_hushed = True
        busy = next((user for user in self._name_users if not user.has_ended), None)
        if busy is not None:
            return f"{busy.name} still uses names"
        trouble = self._rules.unrest()
        if trouble is not None:
            return trouble
        troubles = [self._last_word_of(one) for one in self._writers if one.acks]
        return next((one for one in troubles if one is not None), None)

    def _last_word_of(self, writer: TeamWriter) -> str | None:
        """Where all servers know the rules, its answer is what ZooKeeper's rules say."""
        if writer.waiting:
            return f"{writer.name} still waits for {writer.waiting} answers"
        changes = self._rules.history.changes
        if self._asked.get(writer.name) != changes or writer.last_word is None:
            self._asked[writer.name], writer.last_word = changes, None
            writer.process.soon(writer.send_once)
            return f"{writer.name} asks whether it may write"
        where = writer.topic_partition
        may_write = self._rules.allows(writer.principal, writer.name, AclOperation.write, where.topic)
        if may_write is (writer.last_word is DENIED):
            what = f"{writer.name} is told {writer.last_word.name} at rest, and may write: {may_write}"
            raise Violation("AtRestAllGoByTheRules", what)
        return None


def teams_of(place: Workplace, plan: PrincipalPlan | None, rules: AccessRules | None) -> list[TeamCrowd]:
    """None without principals."""
    return [] if plan is None or rules is None else [TeamCrowd(place, plan, rules)]
