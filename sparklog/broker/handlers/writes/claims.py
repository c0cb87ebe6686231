"""Who may use a name of an atomic write: of sparklog's own names, the principal that was first to use it.

No rule can grant a name that a job draws at random. Another principal needs WRITE on it as a transactional
id, as for a name that a user has chosen.
"""

from sparklog.broker.call import Call
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.requester import ANONYMOUS
from sparklog.core.write_coordinator.requests import Claim
from sparklog.model.own_names import is_own_name


def claim_of(call: Call, app: str) -> Claim:
    if not is_own_name(app):
        return Claim()  # whoever gets here has the right, or needs none
    principal = call.context.principal
    owner = "" if principal == ANONYMOUS else principal
    access = call.access
    holds_right = access is None or access.sees(AclOperation.write, ResourceType.transactional_id, app)
    return Claim(owner, holds_right)
