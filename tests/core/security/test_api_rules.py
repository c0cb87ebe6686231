"""The rules of every API: complete, and consistent with the versions that are served."""

from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.api_rules import API_RULES, ListenerKind, Quota
from sparklog.wire.versions import API_VERSIONS, INTERNAL_VERSIONS, KNOWN_VERSIONS, OWN_VERSIONS


def test_every_api_of_the_protocol_has_a_row():
    assert {key: rule.name for key, rule in API_RULES.items()} == {
        key: api.name for key, api in KNOWN_VERSIONS.items()
    }


def test_clients_are_served_what_is_advertised_to_them_and_nothing_else():
    served = {key for key, rule in API_RULES.items() if ListenerKind.clients in rule.listeners}
    assert served == set(API_VERSIONS) | set(OWN_VERSIONS)


def test_brokers_may_ask_all_that_clients_may():
    for rule in API_RULES.values():
        assert ListenerKind.clients not in rule.listeners or ListenerKind.brokers in rule.listeners, rule


def test_requests_between_brokers_and_controller_need_the_right_to_act_for_the_cluster():
    for key in INTERNAL_VERSIONS:
        (right,) = API_RULES[key].rights
        assert (right.operation, right.resource) == (AclOperation.cluster_action, ResourceType.cluster)
        assert API_RULES[key].quota is Quota.none


def test_every_request_of_clients_uses_up_a_quota():
    assert all(API_RULES[key].quota is not Quota.none for key in API_VERSIONS)
