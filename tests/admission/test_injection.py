"""Where it is not known which policy is in force, no setting of the default policy is a way around a denial."""

from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.pipeline import admit
from webhook.objects.admission import admit_request
from webhook.policy.policy import Withheld

EXEMPT = {"namespaces": ["*"], "podLabels": {"matchLabels": {"team": "infra"}}, "reason": "agents"}
DENIES, LEAVES = (Withheld(handling, "not known yet") for handling in ("deny", "leave"))
POD = make_pod("p").gpu(8).annotate(TYPE, "training")


def withheld(withheld_as: Withheld = DENIES, **spec: Any) -> Any:
    return policy_with(**({"exemptions": [EXEMPT], "optOutNamespaces": ["*"]} | spec)).withheld_as(withheld_as)


def written(kind: str, **spec: Any) -> Any:
    """Return the verdict on an object of a kind in `apps` with such a pod."""
    content = {"selector": {"matchLabels": {"app": "web"}}, "template": POD.label("app", "web").template()}
    obj = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": content}
    request = make_request(obj, namespace="lab", kind=kind, group="apps", resource="", name="web")
    return admit_request(request, withheld(**spec), None)


@pytest.mark.parametrize(
    "pod",
    [POD, POD.annotate(f"{DOMAIN}/inject", "disabled"), POD.label("team", "infra")],
    ids=["plain", "opted out", "exempt by its labels"],
)
def test_a_pod_is_denied(pod: PodBuilder) -> None:
    verdict = admit(make_request(pod.obj(), namespace="lab"), withheld(), None)

    assert isinstance(verdict, Denied)
    assert (verdict.denial.code, verdict.denial.message) == (403, "not known yet")
    assert isinstance(admit(make_request(pod.obj(), namespace="lab"), withheld(LEAVES), None), Bypassed)


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (POD.annotate("kubernetes.io/config.mirror", "x"), "mirror pod"),
        (POD.node_name("n1"), "spec.nodeName is set"),
        (POD.owner("DaemonSet", "agent"), "pod of a DaemonSet"),
    ],
)
def test_a_pod_whose_node_is_chosen_is_left_alone(pod: PodBuilder, reason: str) -> None:
    verdict = admit(make_request(pod.obj(), namespace="lab"), withheld(), None)

    assert isinstance(verdict, Bypassed)
    assert verdict.reason == reason


def test_a_daemon_set_is_denied_as_its_pods_will_not_be() -> None:
    verdict = written("DaemonSet")

    assert isinstance(verdict, Denied)
    assert (verdict.denial.code, verdict.denial.message) == (403, "not known yet")


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Deployment", {}),
        ("DaemonSet", {"withheld_as": LEAVES}),
        ("DaemonSet", {"workloadObjects": {"enabled": False}}),
    ],
    ids=["an object whose pods are denied", "left alone", "workload objects are not evaluated"],
)
def test_other_workload_objects_are_left_alone(kind: str, spec: dict[str, Any]) -> None:
    assert isinstance(written(kind, **spec), Bypassed)
