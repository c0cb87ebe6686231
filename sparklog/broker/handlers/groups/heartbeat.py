"""Heartbeat: a member is alive, and learns whether its group rebalances."""

from sparklog.broker.call import Call
from sparklog.broker.handlers.groups.group_calls import ask
from sparklog.core.group.requests import Heartbeat
from sparklog.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(call: Call, request: HeartbeatRequest) -> None:
    heartbeat = Heartbeat(
        group_id=request.group_id,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
    )
    ask(call, heartbeat, lambda response: HeartbeatResponse(error_code=response.error))
