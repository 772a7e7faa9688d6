"""The facts about a bound pod other than its load."""

import pytest

from tests.support.objects.builders import make_pod
from webhook.kube.pod.bound_status import waiting_reason


@pytest.mark.parametrize(("first", "reason"), [("CreateContainerError", "CreateContainerError"), ("", "ErrImagePull")])
def test_a_pod_waits_for_its_init_containers_first(first: str, reason: str) -> None:
    parts = {"containerStatuses": "ErrImagePull", "initContainerStatuses": first}
    status = {name: [{"name": "main", "state": {"waiting": {"reason": each}}}] for name, each in parts.items()}

    assert waiting_reason(make_pod("p").status(**status).obj()) == reason


def test_malformed_names_and_states_are_no_reason() -> None:
    pod = make_pod("p").status(containerStatuses=[{"name": ["x"], "state": "x"}, {"name": "main", "state": None}]).obj()
    pod["spec"]["containers"].append({"name": {"x": 1}, "resources": "x"})

    assert waiting_reason(pod) == ""
