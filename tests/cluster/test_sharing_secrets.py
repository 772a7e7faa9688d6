"""What a container printed last, and names and addresses that placement does not read, are not shared."""

import json

from tests.builders import make_pod
from webhook.cluster.sharing import without_secrets


def test_messages_and_private_names_are_left_out() -> None:
    terminated = {"terminated": {"exitCode": 1, "message": "secret-1"}}
    pod = (
        make_pod("web")
        .spec(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["secret-2"]}], serviceAccountName="secret-3")
        .status(
            message="secret-4",
            conditions=[{"type": "Ready", "status": "False", "message": "secret-5"}],
            containerStatuses=[{"name": "main", "state": terminated, "lastState": terminated, "resources": {}}],
        )
        .obj()
    )

    shared = without_secrets(pod)

    assert "secret" not in json.dumps(shared)
    assert shared["status"]["containerStatuses"] == [{"name": "main", "resources": {}}]
    assert shared["status"]["conditions"] == [{"type": "Ready", "status": "False"}]
