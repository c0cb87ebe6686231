"""What a controller answers who asks for its report."""

import pytest

from sparklog.controller.reports import report_of
from sparklog.core.controller.cluster_view import view_of
from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind
from sparklog.core.controller.events.event_log import EventLog
from sparklog.core.controller.state.applications import Application, HostedBroker, KnownBroker
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.znodes import ControllerNode
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId, ControllerEpoch
from sparklog.model.settings.config import BrokerConfig
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest

TERM = ControllerEpoch(7)
NODE = ControllerNode("node-1", 9091, 4690, "the-application")


@pytest.fixture
def view():
    log = EventLog(TERM)
    for number in range(5):
        log.add(ClusterEvent(EventKind.topic, "t", f"event {number}", topics=("t",)), 100)
    return view_of(ClusterImage(BrokerConfig(), TERM, 0), log)


def numbers(view, term, number, at_most=10):
    request = ClusterReportRequest(after_term=term, after_number=number, events_max=at_most)
    return [event.number for event in report_of(view, NODE, request).events]


def test_a_follower_of_this_term_gets_what_is_new(view):
    assert numbers(view, 7, 3) == [4, 5]
    assert numbers(view, 7, 1, at_most=2) == [2, 3]


def test_a_follower_of_an_earlier_term_gets_this_one_from_its_first_event(view):
    assert numbers(view, 5, 90) == [1, 2, 3, 4, 5]


def test_a_follower_of_a_later_term_gets_nothing(view):
    assert numbers(view, 8, 1) == []


def test_nobody_gets_a_negative_number_of_events(view):
    assert numbers(view, -1, 0, at_most=-1) == []


def test_the_report_names_the_controller_in_office(view):
    found = report_of(view, NODE, ClusterReportRequest())
    (controller,) = found.controllers
    assert (controller.application, controller.host, controller.port) == ("the-application", "node-1", 9091)
    assert (controller.is_active, found.term, found.last_number, found.age_ms) == (True, 7, 5, 0)


def test_a_candidate_without_the_office_has_no_report():
    refused = report_of(None, NODE, ClusterReportRequest())
    assert refused.error_code is ErrorCode.not_controller


def reported(image, broker):
    view = view_of(image, EventLog(TERM))
    found = {one.broker_id: one for one in report_of(view, NODE, ClusterReportRequest()).brokers}
    return found[broker]


@pytest.fixture
def image():
    image = ClusterImage(BrokerConfig(), TERM, 0)
    image.known[BrokerId(3)] = KnownBroker("node-4", "shop", "0.1.0", 0)
    return image


def test_a_broker_that_is_away_is_named_with_host_application_and_reason(image):
    hosted = HostedBroker(BrokerId(3), "no executor", "the master has 0 cores free", 1_000, 4)
    image.applications = (Application("shop", "driver-1", 9092, brokers=(hosted,)),)
    found = reported(image, 3)
    assert (found.host, found.application, found.release) == ("node-4", "shop", "0.1.0")
    assert (found.state, found.reason) == ("no executor", "the master has 0 cores free")
    assert (found.since_ms, found.relaunches, found.wish) == (1_000, 4, "serving")


def test_a_broker_whose_application_does_not_run_is_away(image):
    found = reported(image, 3)
    assert (found.state, found.reason) == ("away", "no application runs it; the last one was shop")


def test_a_registration_that_is_gone_outweighs_what_the_application_said_before(image):
    hosted = HostedBroker(BrokerId(3), "serving")
    image.applications = (Application("shop", "driver-1", 9092, brokers=(hosted,)),)
    found = reported(image, 3)
    assert (found.state, found.since_ms) == ("away", -1)
    assert found.reason == "its process runs, and its registration is gone: it does not reach ZooKeeper"


def test_standbys_are_the_other_applications(image):
    image.applications = (
        Application(
            "the-application", "node-1", 9091, web_url="http://node-1:9480/", spark_warnings=("set it",)
        ),
        Application("standby", "node-2", 9091, release="0.2.0"),
    )
    own, standby = report_of(view_of(image, EventLog(TERM)), NODE, ClusterReportRequest()).controllers
    assert (own.is_active, own.web_url) == (True, "http://node-1:9480/")
    assert (own.spark_warnings, standby.spark_warnings) == (["set it"], [])
    assert (standby.application, standby.is_active, standby.release) == ("standby", False, "0.2.0")
