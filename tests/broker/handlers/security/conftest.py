"""Passes a request to a handler as a frame of the wire."""

import pytest

from sparklog.core.security.requester import ANONYMOUS
from tests.broker.handlers.groups.conftest import Coordinators, Exchanged


@pytest.fixture
def answered():
    """The response of a handler to a request in a version."""

    def ask(handler, request, version=None, principal=ANONYMOUS):
        exchanged = Exchanged(request, version, "client", Coordinators(), None, principal)
        handler(exchanged.call, exchanged.body)
        return exchanged.response

    return ask
