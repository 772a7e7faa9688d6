"""Limits of a namespace hold for workload objects and Namespaces when they are written."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, make_request, policy_with
from tests.support.objects.builders import make_pod
from webhook.admission.injection import Denied
from webhook.admission.verdict import Advised
from webhook.objects.admission import admit_request

POLICY = policy_with(
    namespaceLimits=[{"namespaces": ["lab"], "queues": ["lab"], "schedulers": ["volcano"], "maxCardsPerPod": 1}]
)
METADATA = "spec.template.metadata.annotations"


def deployment(queue: str, gpus: int, **spec: Any) -> dict[str, Any]:
    pod = make_pod().annotate(TYPE, "inference").annotate(f"{DOMAIN}/queue", queue).gpu(gpus).spec(**spec)
    content = {"replicas": 1, "template": pod.template()}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "llm"}, "spec": content}


def admitted(obj: dict[str, Any], group: str = "") -> Any:
    request = make_request(
        obj, namespace="lab", kind=obj["kind"], resource="", name=obj["metadata"]["name"], group=group
    )
    return admit_request(request, POLICY, None)


def test_a_deployment_beyond_the_limits_is_denied_with_the_paths_of_its_fields() -> None:
    verdict = admitted(deployment("other", 2, schedulerName="kai-scheduler"), "apps")

    assert isinstance(verdict, Denied)
    assert verdict.denial.code == 403
    queue, scheduler, cards = verdict.denial.message.split(";\n")
    assert (
        queue
        == f'{METADATA}[{DOMAIN}/queue]: Forbidden: namespace "lab" may not use queue "other"; allowed queues: lab'
    )
    assert scheduler == (
        'spec.template.spec.schedulerName: Forbidden: namespace "lab" may not use scheduler "kai-scheduler"; '
        "allowed schedulers: volcano"
    )
    assert cards == (
        'spec.template.spec.containers: Forbidden: namespace "lab" may not request 2 cards in a pod; allowed: at most 1'
    )


@pytest.mark.parametrize("queue", ["lab", " lab "])
def test_a_deployment_within_the_limits_is_allowed(queue: str) -> None:
    assert isinstance(admitted(deployment(queue, 1), "apps"), Advised)


def test_a_default_of_the_namespace_beyond_the_limits_is_denied() -> None:
    for annotations in ({f"{DOMAIN}/queue": "other"}, {f"{DOMAIN}/queue": "other", TYPE: "inference"}):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab", "annotations": annotations}}

        verdict = admitted(namespace)

        assert isinstance(verdict, Denied)
        assert verdict.denial.message == (
            f"metadata.annotations[{DOMAIN}/queue]: Forbidden: "
            'namespace "lab" may not use queue "other"; allowed queues: lab'
        )


def test_what_a_template_lacks_for_its_qos_class_has_its_path_in_the_object() -> None:
    usage = {"nodeUsage": {"allow": ["inference"]}, "qos": {"class": "Guaranteed"}}
    request = make_request(deployment("lab", 1), namespace="lab", kind="Deployment", resource="", group="apps")

    verdict = admit_request(request, policy_with(workloadTypes={"inference": usage}), None)

    end = 'but workload type "inference" asks for QoS class Guaranteed'
    assert [each for each in verdict.warnings if "QoS" in each] == [
        f'spec.template.spec.containers[0].resources.limits.{name}: container "main" has no {name} limit, {end}'
        for name in ("cpu", "memory")
    ]
