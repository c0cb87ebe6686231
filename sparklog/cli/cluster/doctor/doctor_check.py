"""One subject that the doctor examines. PURE."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding


@dataclass(frozen=True, slots=True)
class Check:
    """``examine`` returns what is not well; ``well`` is said if that is nothing. ``needs``: the facts without
    which it is not asked.
    """

    name: str
    needs: tuple[Part, ...]
    well: str
    examine: Callable[[ClusterFacts], Iterable[Finding]]
