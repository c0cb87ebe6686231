"""Moving partitions to other brokers while they are written and read (KIP-455).

    replicas  1 2 3 ------------ begin ----------> 4 2 5 1 3     adding 4 5, removing 1 3
                                                       |
                               the new replicas catch up, and their leader proposes them for the ISR
                                                       |
    replicas  4 2 5 <--- the whole target is in the ISR: one write removes the other replicas

The target stands first in the assignment, so that its first replica is the preferred leader already. Each
change is one ZooKeeper write of the topic's node and the partition's state, in a new leader epoch. (Kafka
makes two writes, and a controller that dies between them leaves the two in contradiction.) The end of a move
is an election like others (``sparklog.core.controller.leaders.partition_writes``), so that any later
controller ends it.

A second target for a partition that is being moved replaces the first, and replicas that only the first
target had are removed at once. Cancelling restores the assignment from before the move. A change must leave a
live member in the ISR: a move never makes an unclean election.
"""

from dataclasses import replace

from sparklog.core.controller.commands.partition_commands import (
    ListReassignments,
    Move,
    OngoingMove,
    PartitionResult,
    PartitionsResult,
    ReassignmentsResult,
)
from sparklog.core.controller.leaders.partition_writes import PartitionWrites
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.leader_choice import Election, move
from sparklog.core.controller.state.znodes import Assignment
from sparklog.core.controller.steps import Decision, Reassign
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId, TopicPartition


def decide_moves(image: ClusterImage, step: Reassign) -> Decision | PartitionsResult:
    """The moves that fit one write, or the answer if nothing is left to write."""
    writes, results = PartitionWrites(image), list(step.results)
    seen: set[TopicPartition] = set()
    taken = 0
    for asked in step.moves:
        if writes.is_full:
            break
        try:
            if asked.partition in seen:
                raise KafkaError(ErrorCode.invalid_request, f"{asked.partition} is named more than once.")
            seen.add(asked.partition)
            election = begin_move(image, asked)
            if election is not None and asked.target is not None:
                writes.check_node(asked.partition, election)
        except KafkaError as error:
            taken += 1
            results.append(PartitionResult(asked.partition, error.code, error.message))
            continue
        if election is not None:
            if not writes.has_room_for(asked.partition, election):
                break
            writes.add(asked.partition, election)
        taken += 1
        results.append(PartitionResult(asked.partition))
    result = PartitionsResult(tuple(results))
    if not writes.states:
        return result
    rest = replace(step, moves=step.moves[taken:], results=result.partitions)
    if rest.moves:
        return Decision(step, writes.operations(), writes.changes(), rest=rest, losses=tuple(writes.losses))
    return Decision(step, writes.operations(), writes.changes(), result, losses=tuple(writes.losses))


def begin_move(image: ClusterImage, asked: Move) -> Election | None:
    """The partition at the beginning of the move; None if it is at its target. Raises KafkaError."""
    partition = asked.partition
    state = image.state(partition)
    if state is None or image.is_deleting(partition.topic):
        message = "The partition does not exist."
        raise KafkaError(ErrorCode.unknown_topic_or_partition, message)
    present = image.assignment_of(partition)
    if asked.target is None:
        if not (present.adding or present.removing):
            message = "No partition reassignment is in progress for the partition."
            raise KafkaError(ErrorCode.no_reassignment_in_progress, message)
        planned = Assignment(_origin(present))
    else:
        _check_target(image, present, asked.target)
        planned = plan_move(present, asked.target)
    if planned == present:
        return None
    election = move(
        state,
        planned.replicas,
        planned.adding,
        planned.removing,
        image.candidates(partition),
        image.topics[partition.topic].rules,
    )
    if election is None:
        message = (
            f"None of the replicas that would stay ({list(planned.replicas)}) is alive and in the ISR "
            f"{list(state.isr)}: committed records could be lost."
        )
        raise KafkaError(ErrorCode.invalid_replica_assignment, message)
    return election


def _origin(present: Assignment) -> tuple[BrokerId, ...]:
    """The replicas that the partition had when its move began."""
    return tuple(replica for replica in present.replicas if replica not in present.adding)


def plan_move(present: Assignment, target: tuple[BrokerId, ...]) -> Assignment:
    """The assignment while ``present`` becomes ``target``."""
    origin = _origin(present)
    adding = tuple(replica for replica in target if replica not in origin)
    removing = tuple(replica for replica in origin if replica not in target)
    return Assignment((*target, *removing), adding, removing)


def _check_target(image: ClusterImage, present: Assignment, target: tuple[BrokerId, ...]) -> None:
    problem = ""
    if not target:
        problem = "Empty replica list specified in partition reassignment."
    elif len(set(target)) < len(target):
        problem = f"Duplicate replica ids in partition reassignment replica list: {list(target)}"
    elif min(target) < 0:
        problem = f"Invalid broker id in replica list: {list(target)}"
    else:
        origin = _origin(present)
        dead = sorted(one for one in target if one not in origin and one not in image.brokers)
        if dead:
            problem = (
                f"Replica assignment has brokers that are not alive: {dead}. Replica list: {list(target)}; "
                f"alive are {sorted(image.brokers)}."
            )
    if problem:
        raise KafkaError(ErrorCode.invalid_replica_assignment, problem)


def list_moves(image: ClusterImage, request: ListReassignments) -> ReassignmentsResult:
    """The moves that are under way; an unknown partition has none."""
    asked = None if request.partitions is None else set(request.partitions)
    moves = []
    for partition, _ in image.partitions():
        assignment = image.assignment_of(partition)
        if (assignment.adding or assignment.removing) and (asked is None or partition in asked):
            moves.append(OngoingMove(partition, assignment.replicas, assignment.adding, assignment.removing))
    return ReassignmentsResult(tuple(moves))
