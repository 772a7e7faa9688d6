"""The result of the rules: why a pod is left alone or denied, in which order, and what is injected."""

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import orjson
import pytest

from tests.support.admission import DOMAIN, TYPE, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.admission.injection import Bypassed, Denied, Injection, inject, is_of_daemon_set
from webhook.admission.pipeline import admit
from webhook.admission.pod_content import PodContent
from webhook.backends.references import GangRequest, Within
from webhook.kube.api.json_patch import patched
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


_SELF: Any = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "controller": True}
# The reasons to leave a pod alone, each with what makes a pod such a one; an earlier reason wins.
_REASONS: list[tuple[str, Callable[[PodBuilder], PodBuilder]]] = [
    ("mirror pod", lambda pod: pod.annotate("kubernetes.io/config.mirror", "x")),
    ("spec.nodeName is set", lambda pod: pod.node_name("n1")),
    ("pod of a DaemonSet", lambda pod: pod.owner("Job", "first").owner("DaemonSet", "agent")),
    ("exempt by spec.exemptions[0]: agents", lambda pod: pod.label("team", "infra")),
    (f"{DOMAIN}/inject: disabled", lambda pod: pod.annotate(f"{DOMAIN}/inject", " disabled ")),
    ("no workload type", lambda pod: pod.annotate(TYPE, "")),
]


def _without_type(pod: PodBuilder) -> dict[str, Any]:
    content = pod.obj()
    if not content["metadata"]["annotations"][TYPE]:
        del content["metadata"]["annotations"][TYPE]
    return content


@pytest.mark.parametrize(
    ("first", "second"), [*combinations_with_replacement(range(len(_REASONS)), 2)], ids=lambda index: _REASONS[index][0]
)
def test_of_two_reasons_to_leave_a_pod_alone_the_first_is_given(first: int, second: int) -> None:
    policy = policy_with(exemptions=[EXEMPT], optOutNamespaces=["lab"])
    pod = _without_type(_REASONS[second][1](_REASONS[first][1](POD)))

    assert inject(PodContent(make_request(pod, namespace="lab"), {}), policy) == Bypassed(_REASONS[first][0])


@pytest.mark.parametrize(("namespace", "is_allowed"), [("lab", True), ("other", False)])
@pytest.mark.parametrize("owner", [{}, {f"{DOMAIN}/inject": "disabled"}])
def test_opting_out_needs_the_annotation_and_a_namespace_that_may(
    namespace: str, owner: dict[str, str], *, is_allowed: bool
) -> None:
    policy = policy_with(optOutNamespaces=["lab"])
    results = [inject(PodContent(make_request(POD.obj(), namespace=namespace), owner), policy)]

    assert [isinstance(each, Bypassed) for each in results] == [bool(owner) and is_allowed]


@pytest.mark.parametrize(
    ("owners", "is_of_one"),
    [
        ([_SELF], True),
        ([{**_SELF, "apiVersion": None}], True),
        ([{**_SELF, "apiVersion": "example.com/v1"}], False),
        ([{**_SELF, "apiVersion": "a/b/v1"}], False),
        ([{**_SELF, "apiVersion": "example.com/v1"}, _SELF], True),
        ([{**_SELF, "kind": "Job"}], False),
        (["x", None], False),
        ([], False),
    ],
)
def test_a_daemon_set_is_one_of_a_group_that_the_policy_checks(owners: list[Any], *, is_of_one: bool) -> None:
    assert is_of_daemon_set(owners, policy_with()) is is_of_one


INVALID, FORBIDDEN = ("gpu-count", "many"), ("gpu-product", "NVIDIA-H20")


@pytest.mark.parametrize("handling", ["deny", "warn"])
@pytest.mark.parametrize(
    ("annotations", "code"), [([INVALID], 422), ([FORBIDDEN], 403), ([INVALID, FORBIDDEN], 422), ([], 0)]
)
def test_errors_come_before_denials_and_both_before_warnings(
    handling: str, annotations: list[tuple[str, str]], code: int
) -> None:
    policy = policy_with(
        invalidAnnotations=handling,
        binPacking={"labelKey": "app"},
        namespaceLimits=[{"namespaces": ["lab"], "products": ["NVIDIA-L4"]}],
    )
    # A stray key gives a warning of the reading, and the label one of the edits.
    pod = POD.annotate(f"{DOMAIN}/team", "a").annotate(f"{DOMAIN}/bin-packing", "true").label("app", "mine")
    for key, value in annotations:
        pod = pod.annotate(f"{DOMAIN}/{key}", value)
    found = inject(PodContent(make_request(pod.obj(), namespace="lab"), {}), policy)

    kinds = [kind for each, kind in ((INVALID, "Invalid value"), (FORBIDDEN, "Forbidden")) if each in annotations]
    stray = f"annotation {DOMAIN}/team is not known and does nothing"
    assert found.workload_type == "training"
    if handling == "deny" and annotations:
        assert isinstance(found, Denied)
        assert (found.denial.code, found.denial.reason) == (code, {422: "Invalid", 403: "Forbidden"}[code])
        assert [each.reason for each in found.errors] == kinds
        assert found.denial.message == ";\n".join(map(str, found.errors))
        assert found.warnings == (stray,)
    else:
        assert isinstance(found, Injection)
        assert [each for kind in kinds for each in found.warnings if f": {kind}" in each] == [
            *found.warnings[: len(kinds)]
        ]
        assert found.warnings[len(kinds)] == stray
        assert found.warnings[-1].startswith("label app=mine of the pod wins")
        assert len(found.warnings) == len(kinds) + 2


@pytest.mark.parametrize("namespace", ["default", "lab", ""])
def test_a_pod_without_a_namespace_has_the_limits_of_default(namespace: str) -> None:
    limits = [{"namespaces": ["default"], "workloadTypes": ["inference"]}]
    found = inject(PodContent(make_request(POD.obj(), namespace=namespace), {}), policy_with(namespaceLimits=limits))

    assert isinstance(found, Injection if namespace == "lab" else Denied)


def test_a_pod_that_would_be_too_large_is_invalid_and_keeps_its_warnings() -> None:
    values = [f"{number:0>60}" for number in range(1000)]
    terms = [{"matchExpressions": [{"key": "a", "operator": "In", "values": values}]}] * 100
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = make_pod("p").gpu(1, "amd.com/gpu").annotate(TYPE, "training").annotate(f"{DOMAIN}/team", "a")
    pod = pod.annotate(f"{DOMAIN}/gpu-product", "MI300X").affinity({"nodeAffinity": required})
    found = inject(PodContent(make_request(pod.obj()), {}), policy_with())

    assert isinstance(found, Denied)
    assert (found.denial.code, found.denial.reason, found.workload_type) == (422, "Invalid", "training")
    assert "too many terms" in found.denial.message
    assert len(found.warnings) == 1


@pytest.mark.parametrize("scheduler", ["", "default-scheduler", "volcano"])
@pytest.mark.parametrize("limits", [{"workloadTypes": ["inference"]}, {"products": ["NVIDIA-L4"]}, {}])
def test_what_was_injected_into_a_template_is_taken_back_only_with_a_right(
    limits: dict[str, list[str]], scheduler: str
) -> None:
    own = {"key": "example.com/spot", "operator": "Exists", "effect": "NoSchedule"}
    pod = POD.annotate(f"{DOMAIN}/gpu-product", "NVIDIA-H20").spec(tolerations=[own], schedulerName=scheduler)
    before = inject(PodContent(make_request(pod.obj(), namespace="lab"), {}), policy_with())
    assert isinstance(before, Injection)
    written = patched(pod.obj(), before.operations)
    written["spec"]["schedulerName"] = scheduler
    policy = policy_with(namespaceLimits=[{"namespaces": ["lab"], **limits}], invalidAnnotations="warn")
    after = inject(PodContent(make_request(written, namespace="lab"), {}), policy)

    assert isinstance(after, Injection)
    tolerations = patched(written, after.operations)["spec"]["tolerations"]
    pools = [each for each in written["spec"]["tolerations"] if each["key"].endswith("node.usage")]
    assert tolerations == (
        written["spec"]["tolerations"] if not limits else [own] if "workloadTypes" in limits else [own, *pools]
    )
    assert orjson.loads(after.patch) == after.operations
    if "workloadTypes" in limits:
        assert (after.workload_type, after.check_mode) == ("training", "off")
        assert after.references.scheduler == (scheduler or "default-scheduler")
    assert any("Forbidden" in each for each in after.warnings) is bool(limits)


@pytest.mark.parametrize("backend", ["default", "volcano", "kai"])
@pytest.mark.parametrize("size", [0, 4])
@pytest.mark.parametrize("name", ["", "bert"])
def test_the_gang_is_what_name_and_size_request(name: str, size: int, backend: str) -> None:
    policy = policy_with(
        workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": "s"}},
        schedulers={"s": {"backend": backend}},
    )
    pod = POD.annotate(f"{DOMAIN}/within", "rack")
    pod = pod.annotate(f"{DOMAIN}/gang", name) if name else pod
    pod = pod.annotate(f"{DOMAIN}/gang-size", str(size)) if size else pod
    found = inject(PodContent(make_request(pod.obj()), {}), policy)

    assert isinstance(found, Injection)
    is_whole = bool(name) and backend != "default"
    within = Within("topology.kubernetes.io/rack", is_required=False) if name and backend == "default" else None
    missing = f"{DOMAIN}/gang" if not name and backend != "default" else ""
    wanted = GangRequest(name, size, "s", is_whole, missing=missing, within=within) if name or size else None
    assert (found.gang, found.starts_whole, found.within) == (wanted, is_whole, within)
    assert found.references.scheduler == "s"
