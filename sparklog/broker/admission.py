"""What of a request a broker serves, where there is an authorizer.

Requests that the controller decides on are judged there, by the principal that the Envelope names. Requests
whose rights depend on what the handler finds out are judged by the handler, through ``Call.allows``.
"""

from dataclasses import replace
from typing import Any, Final

from sparklog.broker.call import Call
from sparklog.core.apis.api import Api, Code
from sparklog.network.access.access_control import AccessControl
from sparklog.wire.access.judging import Denied, Question, judge

AT_THE_BROKER: Final = frozenset({"DescribeSchema"})
"""Requests that the controller may be asked for, but in the broker's name."""


def admit(call: Call, control: AccessControl, api: Api, request: Any) -> tuple[Call, Any] | None:
    """The call with its requester's access, and the request without what is refused of it. None: all of it
    was refused, and the client has its answer.
    """
    access = control.of(call.context.requester, api.name)
    call = replace(call, access=access)
    if Code.command in api.code and api.name not in AT_THE_BROKER:
        return call, request
    verdict = judge(Question(api, request, call.version, access, call.broker.metadata.topic_name))
    if not isinstance(verdict, Denied):
        return replace(call, finish=verdict.finish), verdict.request
    if getattr(request, "acks", None) == 0:
        call.exchange.close()  # a producer that wants no answer learns of an error by that
    else:
        call.reply(verdict.response)
    return None
