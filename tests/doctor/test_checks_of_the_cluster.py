"""Each check of nodes, schedulers, quotas and the objects that the policy names: healthy, and with its faults."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest

from placement_doctor.check import MOST_FINDINGS, Severity, diagnose
from placement_doctor.cluster import Cluster
from placement_doctor.nodes import meant
from placement_doctor.registry import CHECKS
from placement_doctor.source import Source
from tests.doctor.healthy import (
    NO_SIGN,
    POLICY,
    PRODUCT,
    USAGE,
    WHITELIST,
    commands_of,
    deployed,
    faults,
    found,
    make_installation,
    named,
    node_of,
    objects,
    quota,
    read_of,
    texts,
    under,
)
from tests.support.admission import policy_with
from tests.support.objects.manifests import Object
from tests.support.tls.certificates import NOW
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence

H20 = f"{PRODUCT}=NVIDIA-H20:NoSchedule"
POOLS = {"nodeUsage": {"allow": ["training", "hybrid"]}}
LACKS = "it does not cover"
ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


def with_nodes(*changed: Object) -> Cluster:
    """Return a healthy installation with these nodes in place of the one of training."""
    return read_of(Source.NODES, *changed, *objects()[Source.NODES][1:])


def one(installation: Cluster, check: str) -> str:
    """Return the text of the one finding of the check."""
    (text,) = texts(found(installation, check))
    return text


def test_a_label_without_the_taint_is_found() -> None:
    (finding,) = found(with_nodes(node_of("training", taints=[H20])), "node-usage")
    assert finding.where == "Node training-1: spec.taints"
    assert finding.remedy == f"`kubectl taint node training-1 {USAGE}=training:NoSchedule`"


def test_a_taint_without_the_label_is_found() -> None:
    (finding,) = found(with_nodes(node_of("training", labels={USAGE: None})), "node-usage")
    assert finding.what.startswith(f"taint {USAGE}=training without the label")
    assert finding.remedy == f"`kubectl label node training-1 {USAGE}=training`"


def test_a_label_and_a_taint_that_differ_are_found() -> None:
    text = one(with_nodes(node_of("training", labels={USAGE: "hybrid"})), "node-usage")
    assert f"label {USAGE}=hybrid, but taint {USAGE}=training" in text


@pytest.mark.parametrize(
    ("effect", "follows"),
    [
        ("PreferNoSchedule", "pods that name nothing of it run there, too"),
        ("NoExecute", "no injected toleration has this effect, so no workload type runs there"),
    ],
)
@pytest.mark.parametrize(
    ("check", "key", "value"), [("node-usage", USAGE, "training"), ("node-products", PRODUCT, "NVIDIA-H20")]
)
def test_a_taint_with_another_effect_is_found(check: str, key: str, value: str, effect: str, follows: str) -> None:
    kept = [each for each in (H20, f"{USAGE}=training:NoSchedule") if not each.startswith(key)]
    (finding,) = found(with_nodes(node_of("training", taints=[*kept, f"{key}={value}:{effect}"])), check)
    assert finding.what == f"taint {key}={value}:{effect}: {follows}"
    changed = ["kubectl", "taint", "node", "training-1", f"{key}:{effect}-", f"{key}={value}:NoSchedule", "--overwrite"]
    assert commands_of(finding.remedy) == [changed]


def test_a_preference_beside_a_taint_that_keeps_pods_off_is_no_fault() -> None:
    """The other value is a fault of its own."""
    taints = [H20, f"{USAGE}=hybrid:NoSchedule", f"{USAGE}=training:PreferNoSchedule"]
    text = one(with_nodes(node_of("training", taints=taints)), "node-usage")
    assert f"label {USAGE}=training, but taint {USAGE}=hybrid" in text


def test_a_taint_that_a_workload_type_tolerates_is_no_fault() -> None:
    extra = {"training": {**POOLS, "extraTolerations": [{"key": USAGE, "operator": "Exists", "effect": "NoExecute"}]}}
    nodes = (node_of("training", taints=[H20, f"{USAGE}=training:NoExecute"]), *objects()[Source.NODES][1:])
    tolerating = make_installation(
        policy=policy_with(workloadTypes=extra), objects={**objects(), Source.NODES: nodes}, trial=None
    )
    assert [each for each in found(tolerating, "node-usage") if each.severity is WARNING] == []


@pytest.mark.parametrize(
    ("node", "check"),
    [
        (node_of("training", labels={USAGE: "trainning"}, taints=[H20]), "node-usage"),
        (node_of("training", labels={USAGE: None}, taints=[H20, f"{USAGE}=trainning:NoSchedule"]), "node-usage"),
        (node_of("training", taints=[H20, f"{USAGE}=trainning:NoSchedule"]), "node-usage"),
        (node_of("training", labels={USAGE: "trainning"}), "node-usage"),
        (node_of("training", labels={PRODUCT: "NVIDIA-H2O"}), "node-products"),
        (node_of("training", labels={PRODUCT: None}, taints=[f"{PRODUCT}=NVIDIA-H2O:NoSchedule"]), "node-products"),
    ],
)
def test_a_remedy_spreads_no_mistyped_value(node: Object, check: str) -> None:
    """Other nodes have NVIDIA-H20, and the policy has training."""
    (finding,) = found(with_nodes(node), check)
    written = " ".join(word for command in commands_of(finding.remedy) for word in command)
    assert "trainning" not in written
    assert "H2O" not in written
    assert "training" in written.replace("training-1", "") or "NVIDIA-H20" in written


def test_a_pool_that_no_type_allows_is_a_note() -> None:
    reserved = node_of("training", labels={USAGE: "storage"}, taints=[f"{USAGE}=storage:NoSchedule"])
    findings = found(with_nodes(reserved), "node-usage")
    assert [each.severity for each in findings] == [INFO]


@pytest.mark.slow
def test_many_nodes_are_one_finding() -> None:
    nodes = [node_of("training", taints=[H20]) for _ in range(5000)]
    for number, each in enumerate(nodes):
        each["metadata"] = {**each["metadata"], "name": f"node-{number:04}"}
    text = one(with_nodes(*nodes), "node-usage")
    assert text.startswith("Nodes node-0000, node-0001,")
    assert "node-0009 and 4990 more: spec.taints" in text


def test_a_product_taint_without_the_label_is_found() -> None:
    (finding,) = found(with_nodes(node_of("training", labels={PRODUCT: None})), "node-products")
    assert finding.what.startswith(f"taint {PRODUCT}=NVIDIA-H20 without the label")
    assert finding.remedy == f"`kubectl label node training-1 {PRODUCT}=NVIDIA-H20`"


@pytest.mark.parametrize("effects", [["NoSchedule"], ["NoExecute"], ["NoSchedule", "NoExecute"]])
def test_another_product_in_the_taint_is_corrected_by_the_label(effects: list[str]) -> None:
    """Discovery reads the label from the hardware, so pods that name it get this card."""
    taints = [f"{USAGE}=training:NoSchedule", *(f"{PRODUCT}=NVIDIA-H20:{each}" for each in effects)]
    node = node_of("training", labels={PRODUCT: "NVIDIA-A100"}, taints=taints)
    (finding,) = found(with_nodes(node), "node-products")
    assert finding.what.startswith(f"label {PRODUCT}=NVIDIA-A100, but taint {PRODUCT}=NVIDIA-H20")
    removed = [f"{PRODUCT}:{each}-" for each in effects if each != "NoSchedule"]
    corrected = [*removed, f"{PRODUCT}=NVIDIA-A100:NoSchedule"]
    assert commands_of(finding.remedy) == [["kubectl", "taint", "node", "training-1", *corrected, "--overwrite"]]


@pytest.mark.parametrize(
    ("pool", "first"),
    [("storage", "add storage to nodeUsage.allow of a workload type, or move the nodes: "), (None, "")],
)
def test_a_product_that_no_type_reaches_is_found(pool: str | None, first: str) -> None:
    """Nodes can be in a pool of their own on purpose, so the policy comes first, and the reader chooses the pool."""
    lost = node_of("training", labels={USAGE: pool, PRODUCT: "NVIDIA-L4"}, taints=[f"{PRODUCT}=NVIDIA-L4:NoSchedule"])
    (finding,) = found(with_nodes(lost), "node-products")
    assert "NVIDIA-L4: no workload type reaches this product" in finding.what
    moved = f"{USAGE}=POOL --overwrite` and `kubectl taint node training-1 {USAGE}=POOL:NoSchedule --overwrite`"
    assert finding.remedy == f"{first}`kubectl label node training-1 {moved}"


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"maip.mxsf.io/node-usage": "training"}, f"key maip.mxsf.io/node-usage: did you mean {USAGE}?"),
        ({"maip.mxsf.io/nodeusage": "training"}, f"key maip.mxsf.io/nodeusage: did you mean {USAGE}?"),
        ({"nvidia.com/gpu-product": "NVIDIA-H20"}, f"key nvidia.com/gpu-product: did you mean {PRODUCT}?"),
        ({USAGE: "trainning"}, f"{USAGE}=trainning: did you mean training?"),
        ({USAGE: "Training"}, f"{USAGE}=Training: did you mean training?"),
    ],
)
def test_a_mistyped_label_is_found(changed: dict[str, str | None], what: str) -> None:
    assert what in one(with_nodes(node_of("training", labels=changed)), "node-spelling")


def test_a_label_that_no_accelerator_has_can_be_mistyped() -> None:
    own = {"name": "x", "resources": ["example.com/x"], "card": "example.com/x"}
    policy = policy_with(accelerators=[{**own, "labels": {"product": ["example.com/x.counts"], "count": []}}])
    nodes = {**objects(), Source.NODES: (node_of("training", labels={"example.com/x.count": "H20"}),)}

    (finding,) = found(make_installation(policy=policy, objects=nodes, trial=None), "node-spelling")

    assert finding.what == "key example.com/x.count: did you mean example.com/x.counts?"


def test_a_mistyped_product_of_the_policy_is_corrected_there() -> None:
    policy = policy_with(allowedProducts={"NVIDIA-H2O": ["team-a"]})
    (finding,) = found(under(policy), "node-spelling")
    assert finding.what == f"{PRODUCT}=NVIDIA-H20, but the policy names NVIDIA-H2O, which no node has"
    assert finding.remedy.startswith("correct the policy; or, if it is right, ")


def test_a_mistyped_product_of_a_node_is_compared_with_those_of_the_other_nodes() -> None:
    mistyped = node_of("training", labels={PRODUCT: "NVIDIA-H2O"})
    assert f"{PRODUCT}=NVIDIA-H2O: did you mean NVIDIA-H20?" in one(with_nodes(mistyped), "node-spelling")


def test_similar_products_are_two_products() -> None:
    assert found(with_nodes(node_of("training", labels={PRODUCT: "NVIDIA-H20S"})), "node-spelling") == []


@pytest.mark.parametrize(
    ("name", "known", "right"),
    [
        ("NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB", None),
        ("nvidia_h20", "NVIDIA-H20", "NVIDIA-H20"),
        ("NVIDIA-H20", "NVIDIA-H20", None),
        ("NVIDIA-H20-SHARED", "NVIDIA-H20", None),
        ("trianing", "training", "training"),
        ("a", "b", None),
        ("x" * 100_000, "x" * 63, None),
    ],
)
def test_other_digits_are_other_names(name: str, known: str, right: str | None) -> None:
    assert meant(name, [known]) == right


def test_labels_of_feature_discovery_are_not_mistyped() -> None:
    labels = {f"nvidia.com/gpu.{name}": "1" for name in ("count", "memory", "family", "machine", "present", "replicas")}
    assert (
        found(with_nodes(node_of("training", labels={**labels, "maip.mxsf.io/node.role": "a"})), "node-spelling") == []
    )


def test_a_type_without_nodes_is_found_and_a_pool_of_a_type_with_nodes_is_a_note() -> None:
    without = read_of(Source.NODES, *objects()[Source.NODES][:1])
    findings = found(without, "pools")
    assert [(each.severity, each.where) for each in findings] == [
        (WARNING, "policy: spec.workloadTypes.inference.nodeUsage.allow"),
        (INFO, "policy: spec.workloadTypes.training.nodeUsage.allow"),
    ]


def test_a_node_template_is_a_node_of_its_pool() -> None:
    template = {"name": "spot", "labels": {USAGE: "inference"}, "capacity": {"cpu": "8"}}
    policy = policy_with(nodeTemplates=[template])
    without = make_installation(policy=policy, objects={**objects(), Source.NODES: objects()[Source.NODES][:1]})
    assert [each.severity for each in found(without, "pools")] == [INFO]


def test_a_type_that_fits_nowhere_is_found_with_the_words_of_the_scheduler() -> None:
    closed = [f"{USAGE}={{}}:NoSchedule", H20, "maintenance=now:NoSchedule"]
    nodes = [node_of(pool, taints=[each.format(pool) for each in closed]) for pool in ("training", "hybrid")]
    text = one(read_of(Source.NODES, *nodes, objects()[Source.NODES][1]), "workload-types")
    assert text.startswith("policy: spec.workloadTypes.training: no node could run its smallest pod")
    assert "0/3 nodes are available" in text
    assert "node(s) had untolerated taint(s)" in text


def test_a_type_that_no_namespace_may_use_is_found() -> None:
    policy = policy_with(workloadTypes={"training": {**POOLS, "allowedNamespaces": ["ml-*"]}})
    assert "no namespace of the cluster matches ml-*" in one(under(policy), "workload-types")


def test_nodes_without_cards_are_judged_without_cards() -> None:
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}}
    pools = ("training", "inference", "hybrid")
    plain = [{**node_of(pool, taints=[f"{USAGE}={pool}:NoSchedule"]), "status": status} for pool in pools]
    assert found(read_of(Source.NODES, *plain), "workload-types") == []


@pytest.mark.parametrize(
    ("signs", "is_found"),
    [
        ({}, True),
        ({"evidence": SchedulerEvidence(frozenset({"scheduling.volcano.sh"}), "")}, False),
        ({"evidence": SchedulerEvidence(frozenset(), "volcano_1\nother")}, False),
        ({"bound_schedulers": {"volcano": ""}}, False),
        ({"objects": {**objects(), Source.DEPLOYMENTS: (deployed("volcano"),)}}, False),
        ({"evidence": None}, False),
    ],
)
def test_a_scheduler_that_nothing_shows_is_found(signs: dict[str, Any], is_found: bool) -> None:
    findings = found(make_installation(**{"evidence": NO_SIGN, **signs}), "schedulers")
    assert [each.where for each in findings] == ["policy: spec.workloadTypes.training.schedulerName"] * is_found
    assert {each.severity for each in findings} <= {Severity.ERROR}


def lease_of(name: str, *, minutes: float) -> Object:
    """Return a Lease that was renewed so many minutes ago."""
    renewed = (NOW - timedelta(minutes=minutes)).isoformat()
    spec = {"holderIdentity": f"{name}-0_3f2a", "leaseDurationSeconds": 15, "renewTime": renewed}
    return {**named(name, namespace="kube-system"), "spec": spec}


def bound(scheduler: str, *, minutes: float) -> dict[str, str]:
    return {scheduler: (NOW - timedelta(minutes=minutes)).isoformat()}


@pytest.mark.parametrize(
    ("name", "groups", "bound_schedulers", "severities"),
    [
        pytest.param("kube-scheduler", [], bound("default-scheduler", minutes=10), [ERROR], id="kube-scheduler"),
        pytest.param("kube-scheduler", [], bound("default-scheduler", minutes=8.5), [ERROR], id="its last binding"),
        pytest.param(
            "kube-scheduler", [], bound("default-scheduler", minutes=1), [INFO], id="it binds without a Lease"
        ),
        pytest.param("kube-scheduler", [], {}, [ERROR], id="it has bound no pod"),
        pytest.param("volcano", ["scheduling.volcano.sh"], {}, [WARNING], id="Volcano without its CRDs removed"),
        pytest.param("volcano", [], bound("volcano", minutes=60), [WARNING], id="pods of a removed Volcano still run"),
        pytest.param("volcano", [], {}, [ERROR], id="Volcano is removed"),
    ],
)
def test_a_scheduler_that_stopped_renewing_its_lease_is_found(
    name: str, groups: list[str], bound_schedulers: dict[str, str], severities: list[Severity]
) -> None:
    leases = (lease_of(name, minutes=9), lease_of("kube-controller-manager", minutes=0))
    signs = SchedulerEvidence.of({"groups": [{"name": each} for each in groups]}, {"items": list(leases)}, NOW)
    if name != "volcano":
        signs = replace(signs, groups=frozenset({"scheduling.volcano.sh"}))
    installation = make_installation(
        objects={**objects(), Source.LEASES: leases}, evidence=signs, bound_schedulers=bound_schedulers
    )

    findings = found(installation, "schedulers")

    assert [each.severity for each in findings] == severities
    renewed = "renewed it 9 min ago"
    assert all(renewed in each.what or "no sign that it runs" in each.what for each in findings)


@pytest.mark.parametrize("minutes", [0, 4, -60])
def test_a_scheduler_that_renews_its_lease_is_no_fault(minutes: float) -> None:
    """Also if it has just restarted, or its clock is ahead."""
    leases = (lease_of("kube-scheduler", minutes=minutes), lease_of("volcano", minutes=minutes))
    signs = SchedulerEvidence.of({}, {"items": list(leases)}, NOW)
    assert found(make_installation(objects={**objects(), Source.LEASES: leases}, evidence=signs), "schedulers") == []


def test_a_scheduler_that_renews_one_of_its_leases_is_no_fault() -> None:
    """An old Lease stays behind when a scheduler gets another one."""
    leases = (lease_of("kube-scheduler", minutes=0), *(lease_of(f"volcano{n}", minutes=9 * n) for n in range(2)))
    signs = SchedulerEvidence.of({}, {"items": list(leases)}, NOW)
    assert found(make_installation(objects={**objects(), Source.LEASES: leases}, evidence=signs), "schedulers") == []


def test_a_scheduler_that_a_pod_can_only_ask_for_is_a_warning() -> None:
    policy = policy_with(allowedSchedulers=["volcano", "mine"])
    installation = make_installation(policy=policy, evidence=NO_SIGN)

    assert [(each.where, each.severity) for each in found(installation, "schedulers")] == [
        ("policy: spec.workloadTypes.training.schedulerName", Severity.ERROR),
        ("policy: spec.allowedSchedulers[1]", Severity.WARNING),
    ]


def test_backends_without_their_group_are_found() -> None:
    policy = policy_with(
        queueing="kueue", schedulers={"gangs": {"backend": "coscheduling"}}, allowedSchedulers=["gangs", "volcano"]
    )
    assert [each.where for each in found(under(policy), "backends")] == [
        "policy: spec.schedulers.gangs",
        "policy: spec.queueing",
    ]
    assert len(found(make_installation(evidence=NO_SIGN), "backends")) == 1


def test_a_priority_class_that_is_missing_is_found() -> None:
    policy = policy_with(workloadTypes={"training": {**POOLS, "priorityClassName": "gone"}})
    (finding,) = found(under(policy), "priority-classes")
    assert (finding.severity, finding.where) == (ERROR, "policy: spec.workloadTypes.training.priorityClassName")


def test_a_default_class_that_the_policy_does_not_know_is_found() -> None:
    policy = policy_with(workloadTypes={"training": {**POOLS, "priorityClassName": "high"}})
    classes = (named("high"), {**named("usual"), "globalDefault": True})
    installation = make_installation(policy=policy, objects={**objects(), Source.PRIORITY_CLASSES: classes})
    assert one(installation, "priority-classes").startswith("policy: spec.defaultPriorityClass: not set")


def test_a_queue_that_is_missing_is_found() -> None:
    policy = policy_with(namespaceLimits=[{"namespaces": ["*"], "queues": ["defualt", "team-*", "default"]}])
    (finding,) = found(under(policy), "queues")
    assert finding.what == "defualt: no Queue or LocalQueue has this name"
    assert finding.remedy == "did you mean default?"


def whitelisted(*tolerations: dict[str, str], text: str | None = None) -> Cluster:
    written = orjson.dumps(list(tolerations)).decode() if text is None else text
    return read_of(Source.NAMESPACES, named("team-a", annotations={WHITELIST: written}))


@pytest.mark.parametrize(
    ("installation", "what"),
    [
        (
            whitelisted({"key": "a"}),
            f"refuses pods of training, inference with 403: {LACKS} {USAGE}=training",
        ),
        (
            whitelisted({"key": USAGE, "operator": "Exists"}),
            f"refuses pods of training, inference with 403: {LACKS} {PRODUCT}:NoSchedule",
        ),
        (whitelisted(text="{"), "is no list of tolerations"),
    ],
)
def test_a_whitelist_that_refuses_what_is_injected_is_found(installation: Cluster, what: str) -> None:
    assert what in one(installation, "tolerations-whitelist")


def test_a_check_has_ten_findings_and_the_number_of_the_others() -> None:
    namespaces = [named(f"team-{number:02}", annotations={WHITELIST: "{"}) for number in range(25)]
    (whitelists,) = (each for each in CHECKS if each.id == "tolerations-whitelist")
    diagnosis = diagnose(read_of(Source.NAMESPACES, *namespaces), [whitelists])
    assert len(diagnosis.findings) == MOST_FINDINGS
    assert diagnosis.omitted == {"tolerations-whitelist": 15}


@pytest.mark.parametrize("text", ["", "[]", '[{"operator": "Exists"}]'])
def test_a_whitelist_that_allows_everything_is_no_fault(text: str) -> None:
    assert found(whitelisted(text=text), "tolerations-whitelist") == []


@pytest.mark.parametrize(
    ("content", "is_found"),
    [
        (quota({"pods": "0"}, "CrossNamespacePodAffinity"), True),
        (quota({"pods": "5"}, "CrossNamespacePodAffinity", hard={"pods": "5"}, used={"pods": "5"}), True),
        (quota({"pods": "5"}, "CrossNamespacePodAffinity", hard={"pods": "5"}, used={"pods": "4"}), False),
        (quota({"pods": "0"}), False),
        (quota({"pods": "0"}, "CrossNamespacePodAffinity", "BestEffort"), False),
        (quota({"pods": "x"}, "CrossNamespacePodAffinity"), False),
    ],
)
def test_a_quota_without_room_for_packed_pods_is_found(content: dict[str, Any], is_found: bool) -> None:
    assert len(found(read_of(Source.QUOTAS, content), "cross-namespace-quotas")) == is_found


def test_packing_within_a_namespace_needs_no_quota() -> None:
    policy = policy_with(binPacking={"namespaces": "same"})
    read = {**objects(), Source.QUOTAS: (quota({"pods": "0"}, "CrossNamespacePodAffinity"),)}
    assert found(make_installation(policy=policy, objects=read), "cross-namespace-quotas") == []
    assert POLICY.spec.bin_packing.namespaces == "all"


@pytest.mark.parametrize("source", [each for each in Source if each is not Source.CONFIGURATIONS])
def test_malformed_objects_end_no_check(source: Source) -> None:
    """Objects of CRDs and other servers can have any form."""
    contents: list[Object] = [
        {},
        {"metadata": None, "spec": [], "status": 1},
        {"metadata": {"name": "x", "labels": 1}},
    ]
    checks = {each.check for each in faults(read_of(source, *contents))}
    assert "installed" not in checks


def test_malformed_configurations_end_no_check() -> None:
    content = {**named("00-placement-webhook"), "webhooks": [{}, {"clientConfig": {}, "rules": [{}]}]}
    assert {"installed", "ca-bundle"} <= {each.check for each in faults(read_of(Source.CONFIGURATIONS, content))}


def with_status(**status: Object) -> Cluster:
    return with_nodes({**node_of("training", labels={"nvidia.com/gpu.count": "8"}), "status": status})


@pytest.mark.parametrize(
    ("installation", "healthy"),
    [
        (with_status(capacity={"nvidia.com/gpu": "8"}, allocatable={"cpu": "8", "nvidia.com/gpu": "7"}), 7),
        (with_status(capacity={"nvidia.com/gpu": "8"}, allocatable={"cpu": "8", "nvidia.com/gpu": "0"}), 0),
        (with_status(capacity={"cpu": "8"}, allocatable={"cpu": "8"}), 0),
    ],
)
def test_devices_that_are_not_healthy_or_not_registered_are_found(installation: Cluster, healthy: int) -> None:
    (finding,) = found(installation, "node-devices")

    assert (finding.where, finding.what) == (
        "Node training-1: status.allocatable",
        f"{healthy} of 8 nvidia.com/gpu are healthy",
    )


def test_healthy_devices_are_not_found() -> None:
    amounts = {"cpu": "8", "nvidia.com/gpu": "8"}

    assert found(with_status(capacity=amounts, allocatable=amounts), "node-devices") == []
