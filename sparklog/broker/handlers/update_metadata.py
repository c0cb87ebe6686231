"""UpdateMetadata: live brokers, topics and leaders, from the controller."""

from collections.abc import Set

from sparklog.broker.call import Call
from sparklog.broker.handlers.from_controller import judge
from sparklog.broker.metadata.metadata_cache import MetadataSnapshot
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, NamedTopic
from sparklog.model.settings.config import DynamicConfigs
from sparklog.wire.messages.control.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


def handle(call: Call, request: UpdateMetadataRequest) -> None:
    error = judge(call, request.controller_epoch, request.broker_epoch)
    if error is None:
        return
    before = call.broker.metadata.snapshot
    taken = call.broker.metadata.update(request) if error is ErrorCode.none else error
    if taken is ErrorCode.none:
        _notify_of_deletions(call, before)
        _make_way(call, request)
        _configure(call, request)
        live = call.broker.metadata.snapshot.brokers
        call.broker.departed_brokers.on_live_brokers(before.brokers, live, _ended(call, request, before))
        call.broker.roles.on_live_brokers(live.keys())
    call.reply(UpdateMetadataResponse(error_code=taken or ErrorCode.none))


def _ended(call: Call, request: UpdateMetadataRequest, before: MetadataSnapshot) -> Set[BrokerEpoch]:
    """Brokers that ended, as the controller tells, or as refused connections of our own show. A controller
    that is new knows nothing of a broker that left before its time.
    """
    refused = call.broker.doubted_leaders.has_refused
    own = {broker.epoch for broker in before.brokers.values() if refused(broker.id, broker.epoch)}
    return own.union(map(BrokerEpoch, request.ended))


def _notify_of_deletions(call: Call, before: MetadataSnapshot) -> None:
    """A topic that is gone, or was made again under its name, has an id that is gone."""
    gone = before.names.keys() - call.broker.metadata.snapshot.names.keys()
    if gone:
        call.broker.coordinators.on_topics_deleted(NamedTopic(before.names[one], one) for one in gone)


def _make_way(call: Call, request: UpdateMetadataRequest) -> None:
    """A topic that is being deleted has no id in the metadata: its logs wait for the controller's word."""
    names = {state.topic_name for state in request.topic_states}
    call.broker.roles.make_way({name: call.broker.metadata.topic_id(name) for name in names})


def _configure(call: Call, request: UpdateMetadataRequest) -> None:
    """Let the logs go on with the settings that came; with all topics' when the broker's own are others."""
    roles = call.broker.roles
    configs = DynamicConfigs(request.dynamic_configs, request.default_configs)
    if configs != call.broker.settings.dynamic:
        topics = call.broker.metadata.snapshot.topics.values()
        roles.configure(configs, [(topic.name, topic.configs) for topic in topics])
    elif request.topic_states:
        roles.configure(configs, [(topic.topic_name, topic.configs) for topic in request.topic_states])
