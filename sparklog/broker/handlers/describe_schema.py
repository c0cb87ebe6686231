"""DescribeSchema: the columns of typed topics, from any broker."""

from sparklog.broker.call import Call
from sparklog.wire.messages.discovery.describe_schema import DescribeSchemaRequest, DescribeSchemaResponse


def handle(call: Call, request: DescribeSchemaRequest) -> None:
    call.reply(DescribeSchemaResponse(topics=call.broker.schemas.described(request.topics)))
