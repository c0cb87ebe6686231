"""Somebody who keeps positions in a group without members: commits, reads, deletes the group, begins anew.

It is alone in its group and asks one thing at a time, so it knows what it must find: what it did last, or one
of those things of which it was not told whether they were done. Such a thing may be done at any later time.
"""

from typing import Final

from simulation.clients.client import RETRY_MS, Workplace
from simulation.clients.groups.client import MOVED, GroupClient
from simulation.clients.groups.offsets import (
    NEVER_WRITTEN,
    OUTSIDER,
    begin_commit,
    commit_request,
    end_commit,
    fetch_request,
    fetched_in,
)
from simulation.invariants.groups import GroupRules
from simulation.invariants.invariant import Violation
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from sparklog.wire.messages.groups.offset_commit import OffsetCommitResponse
from sparklog.wire.messages.groups.offset_fetch import OffsetFetchResponse

INTERVAL_MS: Final = (20, 250)


class Keeper(GroupClient):
    def __init__(
        self, place: Workplace, name: str, group_id: str, partition: TopicPartition, rules: GroupRules
    ) -> None:
        super().__init__(place, name, 1, group_id)
        self.answered_us = -1
        """When it was last told what it has."""
        self._partition = partition
        self._rules = rules
        self._commits = 0
        self._known: str | None = None
        """What it has for certain, if nothing that is open was done meanwhile."""
        self._open: set[str | None] = set()
        """What it asked for without being told of it; None: that nothing is there."""

    def go_on(self) -> None:
        if self.coordinator is None:
            self.find_coordinator()
            return
        what = self._draw.random()
        if self.is_hushed:
            self._fetch(self.coordinator)
        elif what < 0.45:
            self._commit(self.coordinator)
        elif what < 0.6:
            self._delete(self.coordinator)
        else:
            self._fetch(self.coordinator)

    def _next(self, error: ErrorCode) -> None:
        if error in MOVED:
            self.coordinator = None
            self.later(RETRY_MS, self.go_on)
        else:
            self.later(self._draw.uniform(*INTERVAL_MS), self.go_on)

    def _commit(self, host: str) -> None:
        self._commits += 1
        value, positions = f"{self.name}/{self._commits}", {self._partition: self._commits}
        self._rules.on_commit_sent(self.group_id, value, OUTSIDER)
        commits = begin_commit(self._place.recorder, self.name, self.group_id, value, positions)
        self._open.add(value)

        def answered(response: OffsetCommitResponse) -> None:
            outcome = end_commit(self._place.recorder, commits, response)
            self._place.story.tell(self.name, f"commit {value}: {outcome.error.name}")
            if outcome.error is ErrorCode.none:
                self._known = value
                self._rules.on_commit_answered(self.group_id, self._partition, value)
            if outcome.error is ErrorCode.none or outcome.error in NEVER_WRITTEN:
                self._open.discard(value)
            self._next(outcome.error)

        request = commit_request(self.group_id, OUTSIDER, value, positions)
        self.call(host, request, answered, self.find_coordinator)

    def _delete(self, host: str) -> None:
        was_open = None in self._open
        self._open.add(None)

        def answered(response: DeleteGroupsResponse) -> None:
            error = response.results[0].error_code
            self._place.story.tell(self.name, f"deletion: {error.name}")
            if error is ErrorCode.none:
                self._place.witness.marks.reach("a group was deleted")
                self._known = None
            if (error is ErrorCode.none or error in NEVER_WRITTEN) and not was_open:
                self._open.discard(None)
            self._next(error)

        self.call(host, DeleteGroupsRequest(groups_names=[self.group_id]), answered, self.find_coordinator)

    def _fetch(self, host: str) -> None:
        def answered(response: OffsetFetchResponse) -> None:
            fetched = fetched_in(response)
            for found in fetched.offsets.values():
                self._judge(found.value)
                self.answered_us = self._place.schedule.now_us
            self._next(fetched.error)

        self.call(host, fetch_request(self.group_id, [self._partition]), answered, self.find_coordinator)

    def _judge(self, found: str | None) -> None:
        if found != self._known and found not in self._open and not self._rules.is_lost(self.group_id):
            raise Violation(
                "KeepersFindWhatTheyLeft",
                f"{self.name} found {found}; it left {self._known}, and {sorted(map(str, self._open))} may "
                "have been done",
            )
        self._known = found
