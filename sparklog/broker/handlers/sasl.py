"""SaslHandshake and SaslAuthenticate, on listeners without authentication: ILLEGAL_SASL_STATE, as Kafka.

A client that is set to authenticate itself then reports that the broker expects no authentication. A closed
connection would look like a broker that is away, and the client would try again without an end.
"""

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.security.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from sparklog.wire.messages.security.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle_handshake(call: Call, request: SaslHandshakeRequest) -> None:
    call.reply(SaslHandshakeResponse(error_code=ErrorCode.illegal_sasl_state))


def handle_authenticate(call: Call, request: SaslAuthenticateRequest) -> None:
    message = f"listener {call.context.listener} has no login: set security.protocol=PLAINTEXT, or SSL"
    call.reply(SaslAuthenticateResponse(error_code=ErrorCode.illegal_sasl_state, error_message=message))
