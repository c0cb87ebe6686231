"""One group in a dialogue: the requests of its members, with the fields of every version."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.interop.differential.talk import Pending, Talk

TOPIC: Final = "t"
PARTITIONS: Final = 2
MEMBER_ID_REQUIRED: Final = 79
REBALANCE_IN_PROGRESS: Final = 27


def metadata(user_data: bytes, *topics: str) -> bytes:
    """What a consumer joins with, in version 0. Kafka never answers a group with one that it cannot read."""
    listed = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + listed + struct.pack(">i", len(user_data)) + user_data


RANGE: Final = [{"name": "range", "metadata": metadata(b"of range")}]


@dataclass(slots=True)
class Group:
    """``by`` names the connection of a member, ``member`` its id."""

    talk: Talk
    name: str

    def send_join(self, by: str = "a", member: str = "", **fields: Any) -> Pending:
        wanted = {
            "session_timeout_ms": 60_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": RANGE,
            "reason": "because",
            **fields,
        }
        return self.talk.send("JoinGroup", by=by, group_id=self.name, member_id=member, **wanted)

    def join(self, by: str = "a", member: str = "", **fields: Any) -> Any:
        """Join as clients do: with the id that the first answer hands out, where it does."""
        answer = self.send_join(by, member, **fields).answer()
        if not isinstance(answer, str) and answer["error_code"] == MEMBER_ID_REQUIRED:
            return self.send_join(by, text(answer["member_id"]), **fields).answer()
        return answer

    def send_second(self, by: str, **fields: Any) -> Pending:
        """The join of another member, which waits for those that are there."""
        if self.talk.level >= 4 and fields.get("group_instance_id") is None:
            answer = self.send_join(by, **fields).answer()
            return self.send_join(by, text(answer["member_id"]), **fields)
        return self.send_join(by, **fields)

    def send_sync(
        self, by: str, joined: Any, shares: dict[str, bytes] | None = None, **fields: Any
    ) -> Pending:
        assignments = [{"member_id": member, "assignment": share} for member, share in (shares or {}).items()]
        wanted = {
            "generation_id": joined["generation_id"],
            "member_id": text(joined["member_id"]),
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": assignments,
            **fields,
        }
        return self.talk.send("SyncGroup", by=by, group_id=self.name, **wanted)

    def sync(self, by: str, joined: Any, shares: dict[str, bytes] | None = None, **fields: Any) -> Any:
        return self.send_sync(by, joined, shares, **fields).answer()

    def joined(self, by: str = "a", **fields: Any) -> Any:
        """Join an empty group and take all of it: the group is stable."""
        answer = self.join(by, **fields)
        instance = {key: value for key, value in fields.items() if key == "group_instance_id"}
        self.sync(by, answer, {text(answer["member_id"]): b"all"}, **instance)
        return answer

    def two(self) -> tuple[Any, Any]:
        """Two members in generation 2, before they sync; the first leads."""
        first = self.joined("a")
        pending = self.send_second("b")
        self.heartbeat_until("a", first, REBALANCE_IN_PROGRESS)
        again = self.send_join("a", text(first["member_id"]))
        return again.answer(), pending.answer()

    def heartbeat(self, by: str, joined: Any, **fields: Any) -> Any:
        return self.talk.ask("Heartbeat", by=by, **self._member(joined, fields))

    def heartbeat_until(self, by: str, joined: Any, code: int) -> Any:
        return self.talk.until(
            "Heartbeat", lambda answer: answer["error_code"] == code, **self._member(joined, {})
        )

    def _member(self, joined: Any, fields: dict[str, Any]) -> dict[str, Any]:
        return {
            "group_id": self.name,
            "generation_id": joined["generation_id"],
            "member_id": text(joined["member_id"]),
            **fields,
        }

    def leave(self, by: str, *members: str, instances: Sequence[str] = ()) -> Any:
        """By member ids, and from version 3 on by instance ids too; older versions take the first."""
        leaving = [
            *({"member_id": member, "group_instance_id": None} for member in members),
            *({"member_id": "", "group_instance_id": one} for one in instances),
        ]
        member = members[0] if members else ""
        return self.talk.ask("LeaveGroup", by=by, group_id=self.name, member_id=member, members=leaving)

    def commit(
        self,
        offset: int = 5,
        *,
        generation: int = -1,
        member: str = "",
        topic: str = TOPIC,
        partitions: Sequence[int] = (0,),
        metadata: str | None = "m",
        **fields: Any,
    ) -> Any:
        parts = [
            {"partition_index": number, "committed_offset": offset, "committed_metadata": metadata}
            for number in partitions
        ]
        return self.talk.ask(
            "OffsetCommit",
            by=str(fields.pop("by", "a")),
            group_id=self.name,
            generation_id_or_member_epoch=generation,
            member_id=member,
            topics=[{"name": topic, "partitions": parts}],
            **fields,
        )

    def fetch(self, *topics: str, partitions: Sequence[int] = range(PARTITIONS)) -> Any:
        """The committed offsets of topics; of none: of all, where the version can ask for that."""
        wanted = [{"name": name, "partition_indexes": list(partitions)} for name in topics] or None
        can_ask_for_all = self.talk.level >= 2
        one = {"group_id": self.name, "topics": wanted if wanted or can_ask_for_all else []}
        return self.talk.ask("OffsetFetch", **one, groups=[one])

    def describe(self) -> Any:
        return self.talk.ask("DescribeGroups", groups=[self.name])

    def listed(self, *states: str) -> None:
        """How this group is listed, and those whose names begin with its name."""
        answer = self.talk.ask("ListGroups", states_filter=states)
        mine = [one for one in answer["groups"] if text(one["group_id"]).startswith(self.name)]
        answer["groups"] = mine

    def delete(self) -> Any:
        return self.talk.ask("DeleteGroups", groups_names=[self.name])

    def delete_offsets(self, topic: str = TOPIC, partitions: Sequence[int] = (0,)) -> Any:
        parts = [{"partition_index": number} for number in partitions]
        return self.talk.ask(
            "OffsetDelete", group_id=self.name, topics=[{"name": topic, "partitions": parts}]
        )


def text(octets: bytes) -> str:
    return octets.decode()
