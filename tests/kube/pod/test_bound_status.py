"""The facts about a bound pod other than its load."""

import pytest

from webhook.kube.pod.bound_status import waiting_reason
from webhook.kube.reader import Reader


@pytest.mark.parametrize(("first", "reason"), [("CreateContainerError", "CreateContainerError"), ("", "ErrImagePull")])
def test_a_pod_waits_for_its_init_containers_first(first: str, reason: str) -> None:
    parts = {"containerStatuses": "ErrImagePull", "initContainerStatuses": first}
    status = {name: [{"state": {"waiting": {"reason": each}}}] for name, each in parts.items()}

    assert waiting_reason(Reader(status)) == reason
