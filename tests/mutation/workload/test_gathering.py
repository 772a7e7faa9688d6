"""The request that a gang runs within one topology domain, and when it gives way."""

from itertools import product
from typing import Any

import pytest

from tests.support.admission import DOMAIN, TYPE, make_request, policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from webhook.admission.injection import Denied, Injection, RulesResult, inject
from webhook.admission.pod_content import PodContent
from webhook.backends.references import Within
from webhook.kube.api.json_patch import patched
from webhook.mutation.workload.gathering import _decide, within_of
from webhook.policy.policy import Policy

RACK = "topology.kubernetes.io/rack"
KEY = f"{DOMAIN}/within"


def policy_of(*, backend: str = "default", queueing: str = "scheduler", objects: bool = False, **fields: Any) -> Policy:
    domains: dict[str, Any] = {"kai": {"topologyName": "racks"}, "volcano": {"tiers": {"rack": 1}}}
    return policy_with(
        workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": "gangs", **fields}},
        schedulers={"gangs": {"backend": backend} | domains.get(backend, {})},
        queueing=queueing,
        workloadObjects={"mutateTemplates": objects},
    )


def worker(**annotations: str) -> PodBuilder:
    pod = make_pod("worker-0").annotate(TYPE, "training")
    for key, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{key.replace('_', '-')}", value)
    return pod


def result_of(pod: PodBuilder, policy: Policy, namespace: dict[str, str] | None = None) -> RulesResult:
    defaults = {f"{DOMAIN}/{key}": value for key, value in (namespace or {}).items()}
    return inject(PodContent(make_request(pod.obj()), defaults), policy)


def injected(
    pod: PodBuilder, policy: Policy, namespace: dict[str, str] | None = None
) -> tuple[Injection, dict[str, Any]]:
    """Return the injection, and the admitted pod."""
    written = pod.gpu(1)
    result = result_of(written, policy, namespace)
    assert isinstance(result, Injection)
    return result, patched(written.obj(), result.operations)


@pytest.mark.parametrize(
    ("of_type", "annotations", "wanted"),
    [
        ({}, {"within": "rack"}, Within(RACK, is_required=False)),
        ({}, {"within": "rack", "within_mode": "required"}, Within(RACK)),
        ({"mode": "required"}, {"within": "example.com/block"}, Within("example.com/block")),
        ({"topology": "rack", "mode": "required"}, {}, Within(RACK)),
        ({"topology": "rack", "mode": "required"}, {"within_mode": "preferred"}, Within(RACK, is_required=False)),
        ({"topology": "rack"}, {"within": "none"}, None),
        ({"topology": "rack"}, {"within": "nvlink"}, Within("nvidia.com/gpu.clique", is_required=False)),
        ({}, {}, None),
    ],
)
def test_an_annotation_wins_over_the_type(
    of_type: dict[str, str], annotations: dict[str, str], wanted: Within | None
) -> None:
    policy = policy_of(within=of_type)
    found, pod = injected(worker(gang="bert", gang_size="4", **annotations), policy)

    assert (found.within, found.gang and found.gang.within) == (wanted, wanted)
    assert within_of(pod, policy) == wanted


@pytest.mark.parametrize("backend", ["default", "coscheduling"])
@pytest.mark.parametrize(
    ("pod", "label"),
    [
        (worker(gang="bert"), f"{DOMAIN}/gang-group=bert"),
        (worker(gang_size="4").label("job-name", "bert"), "job-name=bert"),
        (worker().owner("StatefulSet", "bert"), f"{DOMAIN}/gang-group=StatefulSet.bert"),
    ],
)
def test_a_gang_is_named_by_its_annotation_or_its_owner(backend: str, pod: PodBuilder, label: str) -> None:
    found, after = injected(pod.annotate(KEY, "rack"), policy_of(backend=backend))

    (weighted,) = after["spec"]["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    key, _, value = label.partition("=")
    selector = {"labelSelector": {"matchLabels": {key: value}}, "topologyKey": RACK}
    assert weighted == {"weight": 100, "podAffinityTerm": selector}
    assert after["metadata"]["labels"][key] == value
    assert [each for each in found.warnings if "/within" in each or f"{DOMAIN}/gang has" in each] == []


@pytest.mark.parametrize(
    ("policy", "pod", "reason"),
    [
        (policy_of(), worker(), "no label, owner or maip.mxsf.io/gang names the gang of the pod"),
        (policy_of(), worker(gang_size="4"), "no label, owner or maip.mxsf.io/gang names the gang of the pod"),
        (
            policy_of(),
            worker().label("leaderworkerset.sigs.k8s.io/name", "llm"),
            "each group of a LeaderWorkerSet is a gang of its own, and no label names the group in its template",
        ),
        (
            policy_of(backend="kai", objects=True),
            worker().owner("Job", "bert"),
            "scheduler gangs makes a PodGroup for each pod of a Job or a Deployment",
        ),
        (
            policy_of(backend="kai"),
            worker().owner("StatefulSet", "bert"),
            (
                "scheduler gangs reads kai.scheduler/topology of the pod's top owner, which only "
                "workloadObjects.mutateTemplates sets"
            ),
        ),
        (
            policy_of(backend="volcano"),
            worker().label("volcano.sh/job-name", "bert"),
            "scheduler gangs reads spec.networkTopology of the Job, which only workloadObjects.mutateTemplates sets",
        ),
        (policy_of(queueing="kueue"), worker(gang="bert"), "Kueue admits only the pods of a queue"),
        (
            policy_of(queueing="kueue"),
            worker().owner("Job", "bert"),
            "Kueue reads it from pod templates, which only workloadObjects.mutateTemplates edits",
        ),
        (
            policy_of(backend="native"),
            worker(gang="bert", within_mode="required"),
            "scheduler gangs reads only spec.schedulingConstraints.topology of the PodGroup",
        ),
    ],
)
def test_a_request_that_is_ignored_is_warned_of_unless_the_namespace_makes_it(
    policy: Policy, pod: PodBuilder, reason: str
) -> None:
    found, after = injected(pod.annotate(KEY, "rack"), policy)

    assert f"{KEY} has no effect: {reason}" in found.warnings
    assert (found.within, within_of(after, policy)) == (None, None)
    assert [each for each in injected(pod, policy, {"within": "rack"})[0].warnings if "within" in each] == []


def test_a_type_whose_request_is_ignored_is_named() -> None:
    policy = policy_of(backend="volcano", within={"topology": "rack"})

    assert (
        "within of workload type training has no effect: scheduler gangs reads only spec.networkTopology of the "
        "PodGroup that the pod names"
    ) in injected(worker(gang="bert"), policy)[0].warnings
    assert [each for each in injected(worker(), policy)[0].warnings if "within" in each] == []


@pytest.mark.parametrize("queueing", ["scheduler", "kueue"])
def test_with_patched_objects_a_pod_of_an_owner_is_within(queueing: str) -> None:
    policy = policy_of(backend="kai", queueing=queueing, objects=True)
    found, pod = injected(worker(within="rack").owner_to_be("StatefulSet", "bert"), policy)

    assert found.within == Within(RACK, is_required=False, topology="racks" if queueing == "scheduler" else "")
    assert [each for each in found.warnings if "within" in each] == []
    keys = [each for each in pod["metadata"]["annotations"] if "topology" in each]
    assert keys == ([] if queueing == "scheduler" else ["kueue.x-k8s.io/podset-preferred-topology"])


@pytest.mark.parametrize("key", [{}, {"kueue.x-k8s.io/podset-required-topology": RACK}])
def test_kueue_reads_no_annotation_of_a_pod_that_its_template_does_not_have(key: dict[str, str]) -> None:
    """Kueue has read the template of the Job when it admitted the Job, before its pods."""
    policy = policy_of(queueing="kueue", objects=True)
    pod = worker(within="rack", within_mode="required").owner("Job", "bert")
    for name, value in key.items():
        pod = pod.annotate(name, value)

    found, after = injected(pod, policy)

    assert found.within == within_of(after, policy) == (Within(RACK) if key else None)
    assert ("podset-required-topology" in str(after["metadata"]["annotations"])) is bool(key)
    unpatched = "Kueue reads it from the pod template, which is only patched in a new object with a name"
    assert (f"{KEY} has no effect: {unpatched}" in found.warnings) is not bool(key)


def test_a_mode_without_a_topology_is_warned_of() -> None:
    found, _ = injected(worker(gang="bert", within_mode="required"), policy_of())

    assert f"{KEY}-mode has no effect without {KEY}" in found.warnings


@pytest.mark.parametrize(
    ("spread", "mode", "of_type", "annotations"),
    [
        ({}, "preferred", {}, {"within": "rack", "spread": "rack"}),
        ({}, "required", {}, {"within": "host", "spread": "zone"}),
        ({"topology": "rack", "mode": "required"}, "required", {}, {"within": "rack"}),
        ({"mode": "required"}, "required", {"topology": "rack", "mode": "required"}, {"spread": "rack"}),
    ],
)
def test_together_and_apart_is_refused_in_one_line(
    spread: dict[str, str], mode: str, of_type: dict[str, str], annotations: dict[str, str]
) -> None:
    policy = policy_of(spread=spread, within=of_type)
    pod = worker(gang="bert", within_mode=mode, **annotations).label("job-name", "bert")

    result = result_of(pod, policy)

    assert isinstance(result, Denied)
    (error,) = result.errors
    assert "set one of them to none" in error.detail
    assert not [each for each in result.warnings if "within" in each]


@pytest.mark.parametrize(
    ("spread", "of_type", "annotations", "namespace", "is_within"),
    [
        ({"topology": "rack"}, {}, {"within": "rack"}, {}, True),
        ({"topology": "rack", "mode": "required"}, {}, {"within": "rack"}, {}, False),
        ({"topology": "rack"}, {}, {"within": "rack", "within_mode": "required"}, {}, True),
        ({}, {"topology": "rack"}, {"spread": "rack"}, {}, False),
        ({}, {"topology": "rack", "mode": "required"}, {"spread": "rack"}, {}, True),
        ({}, {}, {"within": "rack"}, {"spread": "rack"}, True),
        ({}, {}, {"spread": "rack"}, {"within": "rack"}, False),
        ({}, {}, {}, {"spread": "rack", "within": "rack"}, False),
        ({"mode": "required"}, {}, {"within": "rack", "within_mode": "required"}, {"spread": "rack"}, True),
    ],
)
def test_of_two_that_contradict_each_other_one_gives_way(
    spread: dict[str, str],
    of_type: dict[str, str],
    annotations: dict[str, str],
    namespace: dict[str, str],
    is_within: bool,
) -> None:
    policy = policy_of(spread=spread, within=of_type)
    found, pod = injected(worker(gang="bert", **annotations).label("job-name", "bert"), policy, namespace)

    affinity = pod["spec"]["affinity"]
    assert ("podAffinity" in affinity, "podAntiAffinity" in affinity) == (is_within, not is_within)
    assert (found.within is not None) is is_within


def test_what_the_user_states_in_the_terms_of_the_scheduler_is_no_request_of_ours() -> None:
    pod = worker(gang="bert", gang_size="4", queue="q", within="rack")
    policy = policy_of(queueing="kueue")
    own = pod.annotate("kueue.x-k8s.io/podset-slice-required-topology", RACK)

    found, after = injected(own, policy)

    assert (found.within, within_of(after, policy)) == (None, None)


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("rank_apart", [0, 1, 2])
def test_what_is_required_wins_then_what_is_nearer_to_the_pod(rank: int, rank_apart: int) -> None:
    """Ranks are those of the type, of the namespace and of the pod."""
    for is_required, is_apart_required in product((False, True), (False, True)):
        contradict = rank == rank_apart or (is_required and is_apart_required)
        if contradict:
            # What is refused gives way: rather a value of the namespace than of the pod, and never one of the type.
            wanted = ((rank, rank_apart) in ((0, 0), (0, 1), (0, 2), (2, 1)), True)
        elif is_required != is_apart_required:
            wanted = (is_required, False)
        else:
            wanted = (rank > rank_apart, False)
        assert _decide(is_required, is_apart_required, rank, rank_apart) == wanted, (is_required, is_apart_required)


@pytest.mark.parametrize(
    ("within", "spread", "is_apart"),
    [
        ("rack", "rack", True),
        ("rack", "zone", False),
        ("rack", "none", False),
        ("rack", RACK, True),
        ("host", "zone", True),
        ("host", "none", False),
        ("host", " zone ", True),
        ("zone", "host", False),
    ],
)
def test_a_spreading_excludes_a_domain_of_its_key_and_a_host_excludes_every_spreading(
    within: str, spread: str, *, is_apart: bool
) -> None:
    pod = worker(gang="bert", within=within, spread=spread).label("job-name", "j")
    result = result_of(pod, policy_of())

    assert isinstance(result, Denied) is is_apart
    if isinstance(result, Injection):
        affinity = patched(pod.obj(), result.operations)["spec"]["affinity"]
        assert result.within is not None
        assert ("podAntiAffinity" in affinity) is (spread != "none")


@pytest.mark.parametrize("backend", ["default", "volcano"])
@pytest.mark.parametrize(("name", "size", "owner"), [*product(("", "bert"), ("", "4"), ("", "train"))])
def test_a_gang_needs_a_name_or_for_some_schedulers_a_size(name: str, size: str, owner: str, backend: str) -> None:
    """Pod affinity selects the pods of a gang; Volcano reads the domain from any pod, but for one of a PodGroup."""
    pod = worker(within="rack", **({"gang": name} if name else {}), **({"gang_size": size} if size else {}))
    pod = pod.owner("Job", owner) if owner else pod
    found, after = injected(pod, policy_of(backend=backend))

    is_named = bool(name or owner)
    if backend == "default":
        assert (found.within is not None) is is_named
    else:
        assert (found.within is not None) is ((is_named or bool(size)) and not name)
    assert within_of(after, policy_of(backend=backend)) == found.within
    lacks = f"{KEY} has no effect: no label, owner or {DOMAIN}/gang names the gang of the pod"
    assert (lacks in found.warnings) is (not is_named and not (size and backend == "volcano"))


@pytest.mark.parametrize(
    "annotations", [None, 1, {}, {TYPE: 1}, {TYPE: "x", KEY: "rack"}, {TYPE: "training"}, {KEY: "rack"}]
)
def test_a_pod_without_a_type_or_a_request_is_in_no_domain(annotations: Any) -> None:
    pod = worker(gang="bert").label("job-name", "j").obj()
    pod["metadata"]["annotations"] = annotations

    assert within_of(pod, policy_of()) is None


@pytest.mark.parametrize(
    ("annotations", "is_warned"),
    [({"within_mode": "required"}, True), ({"within": "no key", "within_mode": "required"}, False)],
)
def test_mode_is_without_effect_only_if_nothing_is_requested(annotations: dict[str, str], is_warned: bool) -> None:
    annotated = PodContent(make_request(worker(gang="g", **annotations).obj()), {})
    found = inject(annotated, policy_of().with_invalid_annotations("warn"))

    assert any("within-mode has no effect without" in each for each in found.warnings) is is_warned
