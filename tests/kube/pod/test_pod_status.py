"""The part of the status of a pod that counts on its node."""

import msgspec
import pytest

from webhook.kube.pod.pod_status import PodStatus


def amounts(**status: object) -> PodStatus:
    return msgspec.json.decode(msgspec.json.encode(status), type=PodStatus).amounts()


@pytest.mark.parametrize("field", ["containerStatuses", "initContainerStatuses"])
def test_a_container_that_waits_changes_no_amount(field: str) -> None:
    """Otherwise each change of its reason would be one of the node."""
    states: tuple[dict[str, object], ...] = ({"waiting": {"reason": "ImagePullBackOff"}}, {"running": {}})
    first, second = (amounts(**{field: [{"name": "main", "state": state}]}) for state in states)

    assert first == second
    assert amounts(**{field: [{"name": "main", "allocatedResources": {"cpu": "1"}}]}) != first


def test_of_the_conditions_only_a_resize_that_is_pending_counts() -> None:
    def of(**condition: str) -> PodStatus:
        return amounts(conditions=[{"type": "Ready", "status": "True"}, condition])

    assert of(type="PodScheduled", status="True") == amounts()
    assert of(type="PodResizePending", reason="Infeasible") != amounts()
    assert of(type="Other", message="no PodResizePending") == amounts()
