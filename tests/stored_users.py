"""Credentials of SCRAM as Kafka's tools write them into ZooKeeper."""

import base64

from sparklog.core.security.login.scram import ScramCredential


def credential_text(credential: ScramCredential) -> str:
    fields = {
        "salt": credential.salt,
        "stored_key": credential.stored_key,
        "server_key": credential.server_key,
    }
    encoded = [f"{name}={base64.b64encode(data).decode()}" for name, data in fields.items()]
    return ",".join([*encoded, f"iterations={credential.iterations}"])
