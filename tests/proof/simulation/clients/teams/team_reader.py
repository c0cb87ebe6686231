"""Readers of a team, of its own topic and of the other's."""

from simulation.clients.consumers import Consumer
from simulation.clients.teams.team_lookups import TeamLookups


class TeamReader(TeamLookups, Consumer):
    """Asks over and over, whether it may read or not."""
