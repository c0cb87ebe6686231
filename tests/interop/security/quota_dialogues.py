"""Dialogues of quotas: which can be set, how they are described, and what clients are told that exceed one.

How long a client waits depends on the clock, so it is compared whether it waits at all.
"""

from typing import Any, Final

from tests.interop.security.login_dialogues import Dialogue
from tests.interop.security.personas import ADMIN
from tests.interop.security.requests_of_rights import fetch, produce
from tests.interop.security.rule_dialogues import bind, rule
from tests.interop.security.secured_sides import new_topic
from tests.interop.security.secured_talk import SecuredTalk

EXACT, DEFAULT, ANY = range(3)
Entity = dict[str, str | None]


def entry(entity: Entity, **values: float | None) -> dict[str, Any]:
    """An entry of AlterClientQuotas; None as a value removes it, and as a name is the default's."""
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [
            {"key": key, "value": value or 0.0, "remove": int(value is None)} for key, value in values.items()
        ],
    }


def change(talk: SecuredTalk, *entries: dict[str, Any], **more: Any) -> None:
    talk.ask("AlterClientQuotas", **{"by": ADMIN, "validate_only": 0, "entries": entries, **more})


def describe(talk: SecuredTalk, *components: tuple[str, int, str | None], strict: int = 0) -> None:
    """``components``: kind, how it is compared, and the name."""
    wanted = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]
    answer = talk.ask("DescribeClientQuotas", by=ADMIN, components=wanted, strict=strict)
    if isinstance(answer, dict) and answer["entries"]:
        for one in answer["entries"]:
            one["entity"].sort(key=str)
            one["values"].sort(key=str)
        talk.said[-1].answer = {**answer, "entries": sorted(answer["entries"], key=str)}


def quotas_of_users_and_clients(talk: SecuredTalk, name: str) -> None:
    user, client, both = {"user": name}, {"client-id": name}, {"user": name, "client-id": name}
    entities: list[Entity] = [user, client, both, {"user": name, "client-id": None}, {"user": None}]
    change(talk, *(entry(one, producer_byte_rate=1e6, request_percentage=12.5) for one in entities))
    change(talk, entry(user, consumer_byte_rate=2e6, producer_byte_rate=None))
    describe(talk, ("user", EXACT, name))
    describe(talk, ("user", EXACT, name), strict=1)
    describe(talk, ("user", EXACT, name), ("client-id", DEFAULT, None), strict=1)
    describe(talk, ("user", EXACT, name), ("client-id", ANY, None), strict=1)
    describe(talk, ("user", DEFAULT, None))
    describe(talk, ("client-id", EXACT, name))
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
    change(talk, *(entry(one, **dict.fromkeys(keys)) for one in entities))
    describe(talk, ("user", EXACT, name))
    change(talk, entry(user, producer_byte_rate=None))


def quotas_of_addresses(talk: SecuredTalk, name: str) -> None:
    for address, rate in (("10.9.8.7", 5), (None, 9)):
        change(talk, entry({"ip": address}, connection_creation_rate=rate))
    describe(talk, ("ip", EXACT, "10.9.8.7"))
    describe(talk, ("ip", ANY, None))
    for address in ("10.9.8.7", None):
        change(talk, entry({"ip": address}, connection_creation_rate=None))
    describe(talk, ("ip", ANY, None))


def quotas_that_are_only_tried(talk: SecuredTalk, name: str) -> None:
    change(talk, entry({"user": name}, producer_byte_rate=1e6), validate_only=1)
    change(talk, entry({"user": name}, no_such_rate=1e6), validate_only=1)
    describe(talk, ("user", EXACT, name))


def quotas_of_others_than_administrators(talk: SecuredTalk, name: str) -> None:
    change(talk, entry({"user": name}, producer_byte_rate=1e6), by="alice")
    describe(talk, ("user", EXACT, name))


def quotas_that_cannot_be(talk: SecuredTalk, name: str) -> None:
    for one in (
        entry({"user": name}, no_such_rate=1.0),
        entry({"user": name}, connection_creation_rate=1.0),
        entry({"ip": "10.9.8.6"}, producer_byte_rate=1.0),
        entry({"nobody": name}, producer_byte_rate=1.0),
        entry({}, producer_byte_rate=1.0),
        entry({"user": name, "ip": "10.9.8.6"}, producer_byte_rate=1.0),
        entry({"user": ""}, producer_byte_rate=1.0),
        entry({"user": name}, producer_byte_rate=0.5),
        entry({"user": name}),
    ):
        change(talk, one)
    describe(talk, ("user", EXACT, name))


def questions_that_cannot_be(talk: SecuredTalk, name: str) -> None:
    describe(talk, ("nobody", EXACT, name))
    describe(talk, ("user", EXACT, name), ("user", ANY, None))
    describe(talk, ("user", EXACT, name), ("ip", ANY, None))
    describe(talk, ("user", 3, None))


def bound_by(talk: SecuredTalk, key: str, value: float | None) -> None:
    """Set or remove alice's quota. Both brokers follow within a second; nothing of the waits is said."""
    change(talk, entry({"user": "alice"}, **{key: value}))


def is_throttled(talk: SecuredTalk, api: str, **fields: Any) -> None:
    """Ask until the answer says that alice must wait; what is compared is that it does, and what it has."""
    before = len(talk.said)
    talk.until(api, lambda answer: answer["throttle_time_ms"] > 0, by="alice", **fields)
    del talk.said[before:]
    talk.note(f"{api} of alice is throttled", found=True)


def a_produce_beyond_its_quota(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("write", name))
    bound_by(talk, "producer_byte_rate", 10.0)
    api, fields = produce(name)
    is_throttled(talk, api, **fields)
    bound_by(talk, "producer_byte_rate", None)


def a_fetch_beyond_its_quota(talk: SecuredTalk, name: str) -> None:
    new_topic(talk, name)
    bind(talk, rule("write", name), rule("read", name))
    api, fields = produce(name)
    for _ in range(3):
        talk.ask(api, by="alice/2", **fields)
    bound_by(talk, "consumer_byte_rate", 10.0)
    api, fields = fetch(name)
    is_throttled(talk, api, **fields)
    bound_by(talk, "consumer_byte_rate", None)


def changes_beyond_their_quota(talk: SecuredTalk, name: str) -> None:
    """A version that knows of it is refused; what an earlier one asks is done, and the client waits."""
    bind(talk, rule("create", name, pattern=4))
    bound_by(talk, "controller_mutation_rate", 1.0)

    def topics(number: int) -> list[dict[str, Any]]:
        return [{"name": f"{name}-{number}", "num_partitions": 4, "replication_factor": 1}]

    before = len(talk.said)
    numbers = iter(range(100))
    while True:
        answer = talk.ask("CreateTopics", by="alice", version=6, topics=topics(next(numbers)))
        if answer["topics"][0]["error_code"]:
            break
    refused = answer["topics"][0]["error_code"], answer["throttle_time_ms"] > 0
    answer = talk.ask("CreateTopics", by="alice", version=5, topics=topics(next(numbers)))
    done = answer["topics"][0]["error_code"], answer["throttle_time_ms"] > 0
    del talk.said[before:]
    talk.note("CreateTopics of alice", found=[*refused, *done])
    bound_by(talk, "controller_mutation_rate", None)


QUOTA_DIALOGUES: Final[tuple[Dialogue, ...]] = (
    quotas_of_users_and_clients,
    quotas_of_addresses,
    quotas_that_are_only_tried,
    quotas_of_others_than_administrators,
    quotas_that_cannot_be,
    questions_that_cannot_be,
    a_produce_beyond_its_quota,
    a_fetch_beyond_its_quota,
    changes_beyond_their_quota,
)
