"""The facts about a bound pod other than its load."""

from typing import Any

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


WAITS: dict[str, Any] = {"waiting": {"reason": "CrashLoopBackOff"}}
RUNS: dict[str, Any] = {"running": {}}
ENDED: dict[str, Any] = {"terminated": {}}


@pytest.mark.parametrize(
    ("states", "reason"),
    [
        pytest.param({"main": WAITS}, "CrashLoopBackOff", id="alone"),
        pytest.param({"main": WAITS, "debug": RUNS}, "", id="while it is debugged"),
        pytest.param({"main": WAITS, "debug": ENDED}, "CrashLoopBackOff", id="after it was debugged"),
        pytest.param({"main": WAITS, "debug": WAITS}, "CrashLoopBackOff", id="with a debugger that waits"),
        pytest.param({"main": RUNS, "debug": WAITS}, "", id="with only a debugger that waits"),
        pytest.param({"main": WAITS, "init": RUNS}, "", id="while its init container works"),
        pytest.param({"main": WAITS, "init": ENDED}, "CrashLoopBackOff", id="after its init container"),
    ],
)
def test_a_pod_waits_unless_a_container_of_it_or_a_debugger_runs(states: dict[str, Any], reason: str) -> None:
    parts = {"main": "containerStatuses", "init": "initContainerStatuses", "debug": "ephemeralContainerStatuses"}
    status = {parts[name]: [{"name": name, "state": state}] for name, state in states.items()}
    pod = make_pod("p").status(**status).obj()
    pod["spec"]["initContainers"] = [{"name": "init"}]

    assert waiting_reason(pod) == reason


@pytest.mark.parametrize("sidecar", ["", "CrashLoopBackOff", "PodInitializing"])
def test_a_sidecar_that_does_not_start_comes_before_the_containers_that_wait_for_it(sidecar: str) -> None:
    state = {"waiting": {"reason": sidecar}} if sidecar else RUNS
    pod = make_pod("p").status(
        initContainerStatuses=[{"name": "sidecar", "state": state}],
        containerStatuses=[{"name": "main", "state": {"waiting": {"reason": "ErrImagePull"}}}],
    )
    content = pod.obj()
    content["spec"]["initContainers"] = [{"name": "sidecar", "restartPolicy": "Always"}]

    assert waiting_reason(content) == (sidecar if sidecar == "CrashLoopBackOff" else "ErrImagePull")
