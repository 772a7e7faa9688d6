"""The QoS class of a pod, as kubelet and API server compute it."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.qos_pods import PODS
from webhook.kube.pod.qos import qos_class

ROWS = [pytest.param(pod, wanted, id=name) for wanted, pods in PODS.items() for name, pod in pods.items()]


@pytest.mark.parametrize(("pod", "wanted"), ROWS)
def test_class_follows_from_cpu_and_memory_of_all_containers(pod: PodBuilder, wanted: str) -> None:
    assert qos_class(pod.obj()) == wanted


@pytest.mark.parametrize("limits", ["", [], {"cpu": "much"}, {"cpu": None}], ids=str)
def test_malformed_resources_have_no_class(limits: Any) -> None:
    pod = make_pod().obj()
    pod["spec"]["containers"][0]["resources"] = {"limits": limits}

    assert qos_class(pod) in (None, "BestEffort")


@pytest.mark.parametrize("resources", ["", [], [1], {"limits": "much"}, {"requests": {"cpu": "much"}}], ids=str)
def test_malformed_resources_of_the_pod_have_no_class(resources: Any) -> None:
    pod = make_pod().limits(cpu="1", memory="1Gi").obj()
    pod["spec"]["resources"] = resources

    assert qos_class(pod) is None


@pytest.mark.parametrize("without", ["", "limits of main", "limits of init", "limits of both"])
def test_a_pod_level_limit_is_added_only_if_every_container_has_one(without: str) -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}

    def container(name: str) -> dict[str, Any]:
        return {"name": name, "resources": {} if name in without or "both" in without else {"limits": amounts}}

    spec = {
        "resources": {"requests": amounts},
        "containers": [container("main")],
        "initContainers": [container("init")],
    }

    assert qos_class({"spec": spec}) == ("Burstable" if without else "Guaranteed")
