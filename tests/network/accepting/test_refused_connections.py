"""Refused connections in the log: the first of an address at once, the next ones gathered."""

from sparklog.network.accepting.refused_connections import ADDRESSES_MAX, REPORT_AFTER_MS, RefusedConnections

FULL = "it has 2 open"


def test_the_first_refusal_of_each_address_is_logged_at_once(caplog):
    refused = RefusedConnections()
    refused.note("10.0.0.1", FULL, 0)
    refused.note("10.0.0.2", FULL, 1)
    assert caplog.messages == [
        "connection from 10.0.0.1 refused: it has 2 open",
        "connection from 10.0.0.2 refused: it has 2 open",
    ]


def test_further_ones_are_counted_and_logged_after_two_seconds(caplog):
    refused = RefusedConnections()
    assert refused.report_due(0) is None
    refused.note("10.0.0.1", FULL, 0)
    assert refused.report_due(0) == REPORT_AFTER_MS
    for now_ms in range(1, 1_001):
        refused.note("10.0.0.1", f"limit {now_ms}", now_ms)
    assert refused.report_due(1_001) == REPORT_AFTER_MS - 1_001
    assert len(caplog.messages) == 1
    assert refused.report_due(REPORT_AFTER_MS) == REPORT_AFTER_MS  # a storm has a line every two seconds
    assert caplog.messages[1:] == ["1000 more connections from 10.0.0.1 refused: limit 1000"]


def test_an_address_that_is_refused_no_more_is_forgotten(caplog):
    refused = RefusedConnections()
    refused.note("10.0.0.1", FULL, 0)
    assert refused.report_due(REPORT_AFTER_MS) is None
    refused.note("10.0.0.1", FULL, REPORT_AFTER_MS)
    assert [message.split()[0] for message in caplog.messages] == ["connection", "connection"]


def test_beyond_a_thousand_addresses_the_others_share_a_line(caplog):
    refused = RefusedConnections()
    for number in range(ADDRESSES_MAX + 500):
        refused.note(f"10.0.{number // 256}.{number % 256}", FULL, 0)
    assert len(caplog.messages) == ADDRESSES_MAX + 1
    assert refused.report_due(REPORT_AFTER_MS) == REPORT_AFTER_MS
    assert caplog.messages[-1] == "499 more connections from other addresses refused: it has 2 open"


def test_what_waits_is_logged_when_the_server_ends(caplog):
    refused = RefusedConnections()
    for _ in range(3):
        refused.note("10.0.0.1", FULL, 0)
    refused.report_all()
    assert caplog.messages[1:] == ["2 more connections from 10.0.0.1 refused: it has 2 open"]
    assert refused.report_due(0) is None
