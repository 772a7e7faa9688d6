"""With `mutateTemplates`, a template gets what its pods get, and its pods are then admitted unchanged."""

from typing import Any

import jsonpatch
import orjson
import pytest

from tests.support.admission import DOMAIN, PRODUCT, TYPE, admit_pod, make_request, policy_with
from tests.support.objects.builders import make_pod
from tests.support.objects.workloads import APP, SAMPLES, Object, Sample
from tests.support.patch_checks import check_template_patch
from webhook.admission.cluster_view import ClusterView
from webhook.admission.verdict import Advised
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document
from webhook.kube.api.admission import AdmissionRequest
from webhook.kube.workloads.pod_sets import pod_sets
from webhook.kube.workloads.workload_kinds import PATCHED_TEMPLATES
from webhook.objects import template_patch
from webhook.objects.admission import admit_request
from webhook.policy.policy import Policy

KINDS = pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: f"{each.kind}.{each.group}")
POLICY = policy_with(workloadObjects={"mutateTemplates": True})
DEPLOYMENT, STATEFUL_SET, JOB, VOLCANO_JOB = (
    next(each for each in SAMPLES if (each.group, each.kind) == key)
    for key in (("apps", "Deployment"), ("apps", "StatefulSet"), ("batch", "Job"), ("batch.volcano.sh", "Job"))
)


def template(**annotations: str) -> Object:
    pod = make_pod("").gpu(1).label("app", APP["app"]).annotate(TYPE, "training").annotate(PRODUCT, "NVIDIA-H20")
    for key, value in annotations.items():
        pod = pod.annotate(f"{DOMAIN}/{key.replace('_', '-')}", value)
    return pod.template()


def request_of(content: Object, old: Object | None = None) -> AdmissionRequest:
    fields: dict[str, Any] = {
        "kind": content["kind"],
        "group": content["apiVersion"].rpartition("/")[0] if "/" in content["apiVersion"] else "",
        "resource": "",
        "operation": "CREATE" if old is None else "UPDATE",
        "old_object": old,
    }
    return make_request(content, namespace="team-a", **fields)


def advised(content: Object, policy: Policy = POLICY, old: Object | None = None) -> Advised:
    verdict = admit_request(request_of(content, old), policy, None)
    assert isinstance(verdict, Advised)
    return verdict


def patched(content: Object, verdict: Advised) -> Object:
    applied: Object = jsonpatch.apply_patch(content, list(verdict.operations))
    return applied


GANG = {"queue": "q", "gang": "g", "gang_size": "2"}
WITHIN = {"within": "zone", "within_mode": "required"}
ANNOTATIONS: tuple[dict[str, str], ...] = ({}, {"spread": "host"}, GANG, WITHIN)


DOMAINS: dict[str, dict[str, Any]] = {"kai": {"topologyName": "racks"}, "volcano": {"tiers": {"zone": 2}}}


def patching(*, queueing: str = "scheduler", backend: str = "default", **training: Any) -> Policy:
    """Return a policy that patches templates; pods of the type training have these fields and this backend."""
    training = {"nodeUsage": {"allow": ["training"]}, "schedulerName": "gangs"} | training
    return policy_with(
        workloadTypes={"training": training},
        schedulers={"gangs": {"backend": backend} | DOMAINS.get(backend, {})},
        queueing=queueing,
        workloadObjects={"mutateTemplates": True},
    )


POLICIES = {
    "default": POLICY,
    "priority": patching(priorityClassName="high"),
    "qos": patching(qos={"class": "Guaranteed"}),
    "spread": patching(spread={"topology": "rack", "mode": "required", "form": "topologySpread"}),
    "anti-affinity": patching(spread={"topology": "host"}),
    **{each: patching(backend=each) for each in ("volcano", "kai", "coscheduling", "native")},
    "kueue": patching(queueing="kueue"),
}


@KINDS
def test_pods_of_a_patched_template_are_unchanged_at_their_own_admission(sample: Sample) -> None:
    """Each kind meets each policy and all annotations; each policy meets all annotations, on other kinds."""
    for number, policy in enumerate(POLICIES.values(), SAMPLES.index(sample)):
        check_patched_once(sample, ANNOTATIONS[number % len(ANNOTATIONS)], policy)


def check_patched_once(sample: Sample, annotations: dict[str, str], policy: Policy) -> None:
    content = sample.object(template(**annotations), 2)
    verdict = advised(content, policy)
    if (sample.group, sample.kind) not in PATCHED_TEMPLATES:
        assert verdict.operations == ()
        return

    assert verdict.outcome == "Patched"
    check_template_patch(request_of(content), verdict.operations, policy)
    after = patched(content, verdict)
    kinds = policy.kinds
    pods = [(old.pod, new.pod) for old, new in zip(pod_sets(content, kinds), pod_sets(after, kinds), strict=True)]
    changed = [new for old, new in pods if TYPE in old["metadata"].get("annotations", {})]
    assert changed
    assert {admit_pod(pod, policy, namespace="team-a").outcome for pod in changed} == {"Unchanged"}
    assert advised(after, policy).operations == ()


def test_priority_that_the_api_server_resolved_for_another_class_is_removed_from_a_template() -> None:
    training = {"nodeUsage": {"allow": ["training"]}, "priorityClassName": "high"}
    policy = policy_with(workloadTypes={"training": training}, workloadObjects={"mutateTemplates": True})
    pod_template = template()
    pod_template["spec"] |= {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
    content = DEPLOYMENT.object(pod_template, 2)

    verdict = advised(content, policy)
    spec = patched(content, verdict)["spec"]["template"]["spec"]

    check_template_patch(request_of(content), verdict.operations, policy)
    assert spec["priorityClassName"] == "high"
    assert not spec.keys() & {"priority", "preemptionPolicy"}


@KINDS
def test_templates_are_left_alone_by_default(sample: Sample) -> None:
    verdict = advised(sample.object(template()), policy_with())

    assert (verdict.operations, verdict.outcome) == ((), "Unchanged")


def test_update_that_changes_a_template_is_patched_and_another_is_not() -> None:
    stored = DEPLOYMENT.object(template())
    changed = DEPLOYMENT.object(template(bin_packing="false"))
    annotated = stored | {"metadata": stored["metadata"] | {"annotations": {f"{DOMAIN}/gpu-count": "2"}}}

    assert advised(changed, old=stored).operations
    assert advised(annotated, old=stored).operations == ()


def test_template_of_a_job_that_exists_is_not_patched() -> None:
    stored, changed = JOB.object(template()), JOB.object(template(bin_packing="false"))

    assert advised(stored).operations
    assert advised(changed, old=stored).operations == ()


def test_template_of_an_object_without_a_name_is_not_patched() -> None:
    content = JOB.object(template(spread="host"))
    content["metadata"] = {"generateName": "web-"}

    assert advised(content).operations == ()


def test_scheduler_of_the_object_is_not_written_into_its_templates() -> None:
    job = VOLCANO_JOB.object(template())
    job["spec"]["schedulerName"] = "default-scheduler"

    after = patched(job, advised(VOLCANO_JOB.object(template())))

    assert "schedulerName" not in after["spec"]["tasks"][0]["template"]["spec"]


def test_template_without_metadata_gets_what_the_namespace_decides() -> None:
    content = DEPLOYMENT.object(template())
    metadata = content["spec"]["template"].pop("metadata")
    content["spec"]["template"]["metadata"] = {"annotations": metadata["annotations"]}

    labels = patched(content, advised(content))["spec"]["template"]["metadata"]["labels"]

    assert labels == {"jobtype": "binpacked"}


def test_environment_of_containers_is_not_in_the_patch() -> None:
    """A pod without a request gets one that equals its limit, for the QoS class Guaranteed."""
    content = DEPLOYMENT.object(template())
    (container,) = content["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "TOKEN", "value": "secret"}]
    container["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {}}
    fills_requests = policy_with(
        workloadTypes={"training": {"nodeUsage": {"allow": ["training"]}, "qos": {"class": "Guaranteed"}}},
        workloadObjects={"mutateTemplates": True},
    )

    operations = advised(content, fills_requests).operations

    assert "/spec/template/spec/containers/0/resources/requests/cpu" in [each["path"] for each in operations]
    assert "secret" not in str(operations)


def test_patch_that_is_too_large_is_left_out_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_patch, "MOST_PATCH_BYTES", 100)

    verdict = advised(DEPLOYMENT.object(template()))

    assert verdict.operations == ()
    assert "the pod templates are not patched: the patch would be too large; the pods are" in verdict.warnings


@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a", "b", "c")])
@pytest.mark.parametrize("left", [-1, 0, 1])
def test_patch_of_all_templates_together_may_be_as_large_as_the_limit(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], left: int
) -> None:
    sample = next(each for each in SAMPLES if each.kind == "JobSet")
    content = sample.object(template())
    (job,) = content["spec"]["replicatedJobs"]
    content["spec"]["replicatedJobs"] = [job | {"name": each} for each in names]
    operations = advised(content).operations
    by_template = [[each for each in operations if f"/{number}/" in each["path"]] for number in range(len(names))]
    size_bytes = sum(len(orjson.dumps(each)) for each in by_template)
    monkeypatch.setattr(template_patch, "MOST_PATCH_BYTES", size_bytes + left)

    assert advised(content).operations == (operations if left >= 0 else ())


@pytest.mark.parametrize(
    ("modes", "pods", "wanted"),
    [
        (("preferred", "required"), (1, 1), "required"),
        (("required", "preferred"), (1, 1), "required"),
        (("preferred", "required"), (1, 0), "preferred"),
        (("required", "preferred"), (0, 1), "preferred"),
        (("preferred", "preferred"), (0, 0), "preferred"),
        (("", "required"), (1, 1), "required"),
    ],
)
def test_domain_of_an_object_is_the_required_one_of_its_templates_with_pods(
    modes: tuple[str, str], pods: tuple[int, int], wanted: str
) -> None:
    """It is also set on an object without a name, whose templates are not patched."""
    sample = next(each for each in SAMPLES if each.kind == "TFJob")
    content = sample.object(template())
    (role,) = content["spec"]["tfReplicaSpecs"].values()
    content["spec"]["tfReplicaSpecs"] = {
        name: role
        | {"replicas": number, "template": template(**({"within": "zone", "within_mode": mode} if mode else {}))}
        for name, mode, number in zip(("Chief", "Worker"), modes, pods, strict=True)
    }
    unnamed = content | {"metadata": {"generateName": "x-"}}

    for each in (content, unnamed):
        verdict = advised(each, POLICIES["kai"])
        found = patched(each, verdict)["metadata"]["annotations"]
        assert found == {
            "kai.scheduler/topology": "racks",
            f"kai.scheduler/topology-{wanted}-placement": "topology.kubernetes.io/zone",
        }
        assert any(step["path"].startswith("/spec/") for step in verdict.operations) is (each is content)


def test_invalid_annotation_on_one_of_two_templates_keeps_the_other_patched() -> None:
    policy = policy_with(workloadObjects={"mutateTemplates": True, "invalidAnnotations": "warn"})
    job = VOLCANO_JOB.object(template())
    bad = {"name": "bad", "replicas": 1, "template": template(gpu_count="none")}
    job["spec"]["tasks"] = [bad, *job["spec"]["tasks"]]

    paths = {each["path"].partition("/template/")[0] for each in advised(job, policy).operations}

    assert "/spec/tasks/1" in paths


JOB_SET = next(each for each in SAMPLES if each.kind == "JobSet")


def test_patch_is_right_beside_a_template_that_is_no_pod_and_one_that_is_left_alone() -> None:
    content = JOB_SET.object(template(), 2)
    jobs = content["spec"]["replicatedJobs"]
    for name, pod_spec in (("broken", {"tolerations": True}), ("other", {"containers": []})):
        jobs.append({"name": name, "template": {"spec": {"template": {"spec": pod_spec}}}})

    verdict = advised(content)

    assert verdict.operations
    check_template_patch(request_of(content), verdict.operations, POLICY)


def test_a_role_behind_one_that_has_everything_is_patched() -> None:
    content = VOLCANO_JOB.object(template())
    (complete,) = patched(content, advised(content))["spec"]["tasks"]
    (added,) = content["spec"]["tasks"]
    content["spec"]["tasks"] = [complete, added | {"name": "added"}]

    tasks = patched(content, advised(content))["spec"]["tasks"]

    assert tasks == [complete, complete | {"name": "added"}]


KAI_DOMAIN = {
    "kai.scheduler/topology": "racks",
    "kai.scheduler/topology-required-placement": "topology.kubernetes.io/zone",
}


@pytest.mark.parametrize("sample", [STATEFUL_SET, JOB_SET], ids=lambda each: each.kind)
def test_kai_reads_the_domain_of_a_gang_from_the_object_itself(sample: Sample) -> None:
    content = sample.object(template(**WITHIN))

    verdict = advised(content, POLICIES["kai"])
    after = patched(content, verdict)

    assert after["metadata"]["annotations"] == KAI_DOMAIN
    assert "kai.scheduler" not in str(after["spec"])
    assert [each.edits for each in verdict.rules if "kai.scheduler/topology" in str(each)] == [
        tuple(f"{sample.kind}: annotation {key}={value}" for key, value in KAI_DOMAIN.items())
    ]


@pytest.mark.parametrize("sample", [DEPLOYMENT, JOB], ids=lambda each: each.kind)
def test_nothing_is_set_where_kai_makes_a_group_of_each_pod(sample: Sample) -> None:
    content = sample.object(template(**WITHIN))

    verdict = advised(content, POLICIES["kai"])

    assert not patched(content, verdict)["metadata"].get("annotations")
    assert "makes a PodGroup for each pod of a Job or a Deployment" in str(verdict.warnings)


@pytest.mark.parametrize("key", ["kai.scheduler/topology", "kai.scheduler/topology-preferred-placement"])
def test_a_domain_that_the_user_states_on_the_object_is_kept(key: str) -> None:
    content = STATEFUL_SET.object(template(**WITHIN))
    content["metadata"]["annotations"] = {key: "mine"}

    assert patched(content, advised(content, POLICIES["kai"]))["metadata"]["annotations"] == {key: "mine"}


@pytest.mark.parametrize("own", [None, {"mode": "hard", "highestTierAllowed": 1}])
def test_volcano_reads_the_domain_of_a_gang_from_its_job(own: Object | None) -> None:
    policy = policy_with(
        schedulers={"volcano": {"backend": "volcano", **DOMAINS["volcano"]}}, workloadObjects={"mutateTemplates": True}
    )
    content = VOLCANO_JOB.object(template(within="zone"))
    content["spec"] |= {"networkTopology": own} if own else {}

    verdict = advised(content, policy)

    assert patched(content, verdict)["spec"]["networkTopology"] == (own or {"mode": "soft", "highestTierAllowed": 2})
    edits = [edit for each in verdict.rules for edit in each.edits if edit.startswith("Job: ")]
    assert edits == ([] if own else ["Job: spec.networkTopology mode soft, highestTierAllowed 2"])


def test_template_of_two_roles_is_patched_once() -> None:
    """Leaders of a LeaderWorkerSet without a template of their own have that of the workers."""
    sample = next(each for each in SAMPLES if each.kind == "LeaderWorkerSet")
    content = sample.object(template(), 3)
    del content["spec"]["leaderWorkerTemplate"]["leaderTemplate"]

    operations = advised(content).operations

    assert operations
    assert len({each["path"] for each in operations}) == len(operations)


def test_a_template_without_metadata_gets_them() -> None:
    """Its type is a default of the namespace."""
    deployment = DEPLOYMENT.object(template(), 2)
    for absent in ({}, {"metadata": None}):
        content = {**deployment, "spec": {**deployment["spec"], "template": {"spec": template()["spec"], **absent}}}
        defaults = {"metadata": {"name": "team-a", "annotations": {TYPE: "training"}}, "kind": "Namespace"}
        view = ClusterView(snapshot_from_documents([Document("c", {"apiVersion": "v1", **defaults})]), None)

        verdict = admit_request(request_of(content), POLICY, view)

        assert isinstance(verdict, Advised)
        metadata = patched(content, verdict)["spec"]["template"]["metadata"]
        assert metadata["annotations"][f"{DOMAIN}/placement-policy"] == POLICY.identity
        assert [each["op"] for each in verdict.operations if each["path"] == "/spec/template/metadata"] == ["add"]
