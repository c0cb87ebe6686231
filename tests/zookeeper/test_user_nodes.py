"""Users of logins are kept as their nodes are, each by itself."""

import pytest

from sparklog.core.security.login.known_users import ScramUsers
from sparklog.core.security.login.scram import SCRAM_MECHANISMS, credential_of, credential_text
from sparklog.zookeeper.user_nodes import UsersReader

SHA_256 = SCRAM_MECHANISMS["SCRAM-SHA-256"]


def stored(salted_password: bytes) -> dict[str, str]:
    """The settings of a user's node with one credential."""
    credential = credential_of(SHA_256, salted_password, b"salt", 4_096)
    return {"SCRAM-SHA-256": credential_text(credential)}


ALICE = stored(b"of-alice")


class World:
    def __init__(self):
        self.users, self.gone = ScramUsers(b"secret"), []
        self.reader = UsersReader(self.users, lambda user, mechanism: self.gone.append((user, mechanism)))


@pytest.fixture
def world():
    return World()


def test_all_users_are_known_at_first_and_quotas_beside_them_are_none_of_theirs(world):
    world.reader.replace(
        {
            "/config/users/alice": {**ALICE, "producer_byte_rate": "1"},
            "/config/users/alice/clients": {},
            "/config/users/alice/clients/app": {"producer_byte_rate": "1"},
            "/config/users/<default>": {"producer_byte_rate": "1"},
            "/config/clients/app": {},
        }
    )
    assert world.users.has("alice", "SCRAM-SHA-256")
    assert not world.users.has("alice", "SCRAM-SHA-512")
    assert not world.users.has("app", "SCRAM-SHA-256")


def test_a_quota_of_a_users_client_takes_no_credential_away(world):
    world.reader.replace({"/config/users/alice": ALICE})
    world.reader.put("/config/users/alice/clients/app", {"producer_byte_rate": "1"})
    world.reader.put("/config/clients/alice", {"producer_byte_rate": "1"})
    assert (world.users.has("alice", "SCRAM-SHA-256"), world.gone) == (True, [])


@pytest.mark.parametrize("left", [{}, {"producer_byte_rate": "1"}, {"SCRAM-SHA-256": "damaged"}])
def test_a_credential_that_is_gone_is_reported_once_and_another_users_stays(world, left):
    world.reader.replace({"/config/users/alice": ALICE, "/config/users/bob": stored(b"of-bob")})
    for _ in range(2):
        world.reader.put("/config/users/alice", left)
    assert world.gone == [("alice", "SCRAM-SHA-256")]
    assert not world.users.has("alice", "SCRAM-SHA-256")
    assert world.users.has("bob", "SCRAM-SHA-256")


def test_a_user_who_is_written_later_may_log_in(world):
    world.reader.replace({})
    world.reader.put("/config/users/alice", ALICE)
    assert world.users.has("alice", "SCRAM-SHA-256")
