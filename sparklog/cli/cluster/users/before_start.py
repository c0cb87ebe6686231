"""A user for a cluster that has not started yet: brokers whose listener has a login need one to start with.

The node is written as the controller writes it, over the version that was read, so that a cluster which does
run loses nothing by it.
"""

from typing import Final

from sparklog.controller.snapshot import read_entities
from sparklog.core.controller.commands.controller_command import CommandId
from sparklog.core.controller.commands.user_commands import AlterUsers, UsersResult
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.quota_nodes import ENTITY_DIRECTORIES
from sparklog.core.controller.state.znodes import CONFIG_CHANGES
from sparklog.core.controller.steps import ApplyUsers, Decision
from sparklog.core.controller.users.user_changes import decide_users, path_of_user
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.ids import ControllerEpoch
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.zookeeper import MultiFailed, ZooKeeper
from sparklog.wire.commands.user_requests import alter_users
from sparklog.wire.messages.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)

_ATTEMPTS_MAX: Final = 5


def write_user(zookeeper: ZooKeeper, upsertion: ScramCredentialUpsertion, mechanism: str) -> None:
    """Add a credential that the user lacks. Raises SparklogError if the user has one, KafkaError if it cannot
    be.
    """
    request = alter_users(AlterUserScramCredentialsRequest(upsertions=[upsertion]))
    for path in (*ENTITY_DIRECTORIES, CONFIG_CHANGES):
        zookeeper.ensure_path(path)
    for _ in range(_ATTEMPTS_MAX):
        image = ClusterImage(BrokerConfig(), ControllerEpoch(-1), -1)
        image.take_entities(read_entities(zookeeper))
        if mechanism in image.quotas.get(path_of_user(upsertion.name), {}):
            raise SparklogError(f"user {upsertion.name!r} has a password for {mechanism} already")
        try:
            zookeeper.multi(_decided(image, request).operations)
        except MultiFailed:
            continue  # another tool was faster
        return
    raise SparklogError(f"user {upsertion.name!r} is changed by others all the time; try again")


def _decided(image: ClusterImage, request: AlterUsers) -> Decision:
    verdict = decide_users(image, ApplyUsers(CommandId(0), request))
    if isinstance(verdict, UsersResult):
        refused = next(one for one in verdict.results if one.error is not ErrorCode.none)
        raise KafkaError(refused.error, refused.message)
    return verdict
