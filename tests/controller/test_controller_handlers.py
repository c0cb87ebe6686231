"""The controller's listener, without a network."""

from sparklog.controller.handlers import SIZE_PREFIX_BYTES, ControllerHandlers
from sparklog.core.controller.commands.config_commands import ConfigResult, ConfigsResult
from sparklog.model.config import BrokerConfig
from sparklog.model.errors import ErrorCode
from sparklog.model.parts import read_parts
from sparklog.wire.codec import decode_response, encode_request
from sparklog.wire.messages.admin.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementallyAlterableConfig,
)
from sparklog.wire.messages.control.envelope import EnvelopeRequest, EnvelopeResponse


class Exchange:
    def __init__(self, frame):
        self.frame = frame
        self.replies = []

    def reply(self, parts):
        self.replies.append(read_parts(parts))

    def close(self):
        raise AssertionError("closed")


def in_envelope(request, version):
    inner = encode_request(request, version, 7, "client")[SIZE_PREFIX_BYTES:]
    envelope = EnvelopeRequest(request_data=inner, request_principal=b"", client_host_address=b"")
    return Exchange(encode_request(envelope, 0, 8, "broker")[SIZE_PREFIX_BYTES:])


def test_an_answer_that_its_version_cannot_carry_does_not_cost_the_office():
    name = "x" * 32_760
    change = IncrementallyAlterableConfig(name=name, config_operation=0, value="1")
    resource = IncrementalAlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
    exchange = in_envelope(IncrementalAlterConfigsRequest(resources=[resource]), 0)
    submitted = []
    handlers = ControllerHandlers(BrokerConfig(), lambda command, answer: submitted.append(answer))
    handlers.handle(exchange)
    (answer,) = submitted
    refused = ConfigResult(2, "t", ErrorCode.invalid_config, f"unknown setting {name}")
    answer(ConfigsResult((refused,)))
    _, response = decode_response(EnvelopeResponse, 0, exchange.replies[0][SIZE_PREFIX_BYTES:])
    assert response.error_code is ErrorCode.unknown_server_error
