"""Quotas as the nodes of ZooKeeper have them."""

from sparklog.core.client_quotas.quota_book import QuotaBook
from sparklog.core.client_quotas.quota_keys import PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE, quotas_in


def bound(book, key, user, client_id):
    limit = book.of_clients[key].find(user, client_id)
    return None if limit is None else limit.bound


def test_a_node_s_quotas_are_set_changed_and_removed():
    book = QuotaBook()
    book.put("/config/users/a%20b", {"producer_byte_rate": "10", "request_percentage": "2.5"})
    assert bound(book, PRODUCER_BYTE_RATE, "a b", "x") == 10.0
    assert bound(book, REQUEST_PERCENTAGE, "a b", "x") == 2.5
    book.put("/config/users/a%20b", {"producer_byte_rate": "20"})
    assert bound(book, PRODUCER_BYTE_RATE, "a b", "x") == 20.0
    assert bound(book, REQUEST_PERCENTAGE, "a b", "x") is None
    book.put("/config/users/a%20b", {})
    assert bound(book, PRODUCER_BYTE_RATE, "a b", "x") is None


def test_what_is_not_among_all_nodes_any_more_is_gone():
    book = QuotaBook()
    book.replace({"/config/clients/c": {"producer_byte_rate": "1"}, "/config/clients": {}})
    book.replace({"/config/users/<default>/clients/c": {"producer_byte_rate": "2"}})
    assert bound(book, PRODUCER_BYTE_RATE, "u", "c") == 2.0
    assert bound(book, PRODUCER_BYTE_RATE, "u", "other") is None


def test_addresses_have_rates_of_their_own_or_that_of_any():
    book = QuotaBook()
    book.put("/config/ips/<default>", {"connection_creation_rate": "5"})
    book.put("/config/ips/10.0.0.1", {"connection_creation_rate": "0"})
    assert book.of_addresses == {None: 5.0, "10.0.0.1": 0.0}
    book.put("/config/ips/10.0.0.1", {})
    assert book.of_addresses == {None: 5.0}
    book.put("/config/ips/0:0:0:0:0:0:0:1", {"connection_creation_rate": "3"})
    assert book.of_addresses == {None: 5.0, "::1": 3.0}


def test_credentials_and_values_that_are_no_quotas_are_left_out():
    configs = {
        "SCRAM-SHA-256": "salt=…",
        "producer_byte_rate": "many",
        "consumer_byte_rate": "-1",
        "request_percentage": "inf",
        "controller_mutation_rate": "3",
    }
    assert quotas_in(configs) == {"controller_mutation_rate": 3.0}
