"""Notifications of changed settings, as Kafka writes them."""

import pytest

from sparklog.core.controller.state.entity_changes import changed_path, notify_of
from sparklog.model.errors import SparklogError


def test_a_notification_names_the_entity_s_path_below_the_directory_of_settings():
    create = notify_of("/config/users/alice/clients/<default>")
    assert (create.path, create.sequential) == ("/config/changes/config_change_", True)
    assert create.data == b'{"version":2,"entity_path":"users/alice/clients/<default>"}'
    assert changed_path(create.path, create.data) == "/config/users/alice/clients/<default>"


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b'{"version":1,"entity_type":"clients","entity_name":"c"}', "/config/clients/c"),
        (b'{"version":2,"entity_path":"ips/10.0.0.1"}', "/config/ips/10.0.0.1"),
        (b'{"version":2,"entity_path":"topics/t"}', None),
        (b'{"version":2,"entity_path":"users/../brokers/1"}', None),
        (b'{"version":2,"entity_path":"users/"}', None),
        (b'{"version":2,"entity_path":7}', None),
    ],
)
def test_other_notifications_name_nothing_that_is_followed(data, path):
    assert changed_path("/config/changes/config_change_1", data) == path


@pytest.mark.parametrize("data", [b'{"version":2}', b"[]", b"\xff", b""])
def test_a_notification_that_cannot_be_read_is_refused_with_its_path(data):
    with pytest.raises(SparklogError, match="/config/changes/config_change_1 names nothing that has changed"):
        changed_path("/config/changes/config_change_1", data)
