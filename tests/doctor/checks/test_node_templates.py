"""The nodes that autoscalers add are compared with the node templates of the policy."""

from copy import deepcopy
from typing import Any

import pytest
import yaml

from placement_doctor.check import Finding, Severity
from placement_doctor.cluster import Cluster
from placement_doctor.kept import kept
from placement_doctor.source import Source
from tests.acceptance.placing.pools import pool_node
from tests.doctor.healthy import PRODUCT, USAGE, found, make_installation, named, objects
from tests.support.admission import policy_with
from tests.support.objects.manifests import Object

KEY, TYPE = "karpenter.sh/nodepool", "node.kubernetes.io/instance-type"
GROUP = "eks.amazonaws.com/nodegroup"
AUTOSCALER = named("cluster-autoscaler", namespace="kube-system")
TAINTS = [
    {"key": PRODUCT, "value": "NVIDIA-H20", "effect": "NoSchedule"},
    {"key": USAGE, "value": "training", "effect": "NoSchedule"},
]


def pool_member(name: str = "k-1") -> Object:
    made = pool_node(name, "training")
    made["metadata"]["labels"] |= {KEY: "gpu", TYPE: "p5.48xlarge"}
    return made


def pool(name: str = "gpu", **spec: Any) -> Object:
    return {"kind": "NodePool", **named(name), "spec": spec}


def claim(name: str = "gpu-x", cards: str = "8") -> Object:
    allocatable = {"cpu": "64", "nvidia.com/gpu": cards, "vpc.amazonaws.com/efa": "0"}
    metadata = named(name, labels={KEY: "gpu", USAGE: "training", TYPE: "p5.48xlarge"})
    return {"kind": "NodeClaim", **metadata, "spec": {"taints": TAINTS}, "status": {"allocatable": allocatable}}


def template(labels: dict[str, str] | None = None, **of: Any) -> Object:
    """Return the entry that describes `pool_member()`."""
    known = {"labels": {USAGE: "training", PRODUCT: "NVIDIA-H20"} | (labels or {}), "taints": deepcopy(TAINTS)}
    return {"name": "gpu", "capacity": {"nvidia.com/gpu": "8"}, **known, **of}


def cluster(nodes: tuple[Object, ...], pools: tuple[Object, ...], *templates: Object, **read: Any) -> Cluster:
    known = {Source.NODES: (*objects()[Source.NODES], *nodes), Source.NODE_POOLS: pools}
    fields = {Source[name]: value for name, value in read.items()}
    policy = policy_with(nodeTemplates=[*templates])
    return make_installation(policy=policy, objects={**objects(), **known, **fields}, trial=None)


def findings(nodes: tuple[Object, ...], pools: tuple[Object, ...], *templates: Object, **read: Any) -> list[Finding]:
    return found(cluster(nodes, pools, *templates, **read), "node-templates")


def entry_of(finding: Finding) -> Object:
    (entry,) = yaml.safe_load(finding.remedy.removeprefix("add ").partition(", with the labels")[0])
    content: Object = entry
    return content


def test_the_missing_entry_is_printed_and_closes_the_finding() -> None:
    (missing,) = findings((pool_member("k-2"), pool_member()), (pool(),))

    assert missing.severity is Severity.WARNING
    assert missing.what == (
        "no entry is as the nodes of NodePool gpu, such as k-1 (8 nvidia.com/gpu): if none is left, pods that need one "
        "are Infeasible"
    )
    entry = entry_of(missing)
    assert entry == {
        "name": "gpu-p5.48xlarge",
        "labels": {KEY: "gpu", USAGE: "training", PRODUCT: "NVIDIA-H20", TYPE: "p5.48xlarge"},
        "taints": [
            {"key": USAGE, "value": "training", "effect": "NoSchedule"},
            {"key": PRODUCT, "value": "NVIDIA-H20", "effect": "NoSchedule"},
        ],
        "capacity": pool_node("k-1", "training")["status"]["allocatable"],
    }
    assert findings((pool_member(), pool_member("k-2")), (pool(),), entry) == []


@pytest.mark.parametrize(
    ("own", "is_missing"),
    [
        pytest.param(template(), False, id="without the pool"),
        pytest.param(template({KEY: "gpu"}), False, id="with the pool"),
        pytest.param(template({KEY: "cpu"}), True, id="of another pool"),
        pytest.param(template({PRODUCT: "NVIDIA-A100"}), True, id="of another product"),
        pytest.param(template({USAGE: "hybrid"}), True, id="of another usage"),
        pytest.param(template(capacity={"nvidia.com/gpu": "4"}), True, id="of another size"),
        pytest.param(template(taints=TAINTS[:1]), True, id="with other taints"),
    ],
)
def test_a_template_describes_the_nodes_if_cards_labels_and_taints_are_theirs(own: Object, is_missing: bool) -> None:
    pools = pool(), pool("cpu")

    missing = [each for each in findings((pool_member(),), pools, own) if "no entry" in each.what]

    assert bool(missing) is is_missing


def test_labels_of_cards_are_those_of_the_accelerator() -> None:
    new, old, driver = "amd.com/gpu.product-name", "amd.com/gpu.product", "example.com/driver"
    own = pool_member()
    own["metadata"]["labels"] = {KEY: "gpu", new: "MI300X", driver: "6"}
    own["spec"]["taints"] = []
    own["status"]["allocatable"] = {"amd.com/gpu": "8"}
    amd = {"name": "amd", "resources": ["amd.com/gpu"], "card": "amd.com/gpu"}
    labels = {"product": [new, old], "driver": [driver]}

    def missing(product: dict[str, str]) -> list[Finding]:
        entry = {"name": "gpu", "capacity": {"amd.com/gpu": "8"}, "labels": product}
        policy = policy_with(accelerators=[{**amd, "labels": labels}], nodeTemplates=[entry])
        read = {**objects(), Source.NODES: (own,), Source.NODE_POOLS: (pool(),)}
        return found(make_installation(policy=policy, objects=read, trial=None), "node-templates")

    (other,) = missing({new: "MI210"})
    assert entry_of(other)["labels"] == {KEY: "gpu", new: "MI300X", driver: "6"}
    assert missing({new: "MI300X"}) == missing({old: "MI300X"}) == []


def test_taints_that_pass_are_not_compared() -> None:
    starting = pool_member()
    passing = [
        {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"},
        {"key": "example.com/agent", "effect": "NoExecute"},
    ]
    starting["spec"]["taints"] += passing
    gpu = pool(template={"spec": {"startupTaints": passing[1:]}})

    assert findings((starting,), (gpu,), template()) == []


def test_a_node_claim_gives_the_size_and_not_the_product() -> None:
    (missing,) = findings((), (pool(), claim()))

    assert missing.remedy.endswith("}, with the labels that discovery writes")
    assert entry_of(missing)["capacity"] == {"cpu": "64", "nvidia.com/gpu": "8"}
    assert findings((), (pool(), claim()), template()) == []


def test_a_node_claim_of_a_known_node_adds_nothing() -> None:
    assert len(findings((pool_member(),), (pool(), claim()))) == 1
    assert len(findings((pool_member(),), (pool(), claim(cards="4")))) == 2


def test_a_pool_without_nodes_is_a_note_if_it_is_for_accelerators() -> None:
    gpu = pool(limits={"nvidia.com/gpu": "64"})
    by_label = pool("usage", template={"metadata": {"labels": {USAGE: "training"}}})
    required = pool("product", template={"spec": {"requirements": [{"key": PRODUCT, "operator": "Exists"}]}})

    notes = findings((), (gpu, by_label, required, pool("cpu", limits={"cpu": "64"})))

    assert {each.severity for each in notes} == {Severity.INFO}
    assert [each.what.split()[1] for each in notes] == ["gpu", "usage", "product"]
    assert findings((), (gpu,), template({KEY: "gpu"})) == []


def test_a_template_of_a_pool_that_does_not_exist_is_a_fault() -> None:
    (wrong,) = findings((), (pool("cpu"),), template({KEY: "gone"}))

    assert "there is no NodePool gone" in wrong.what
    (of_several,) = findings((), (pool("gpu"), pool("cpu")), template({KEY: "gone"}))
    assert of_several.remedy == "remove the entry, or name one of cpu, gpu"
    assert findings((), (), template({KEY: "gone"})) == []


@pytest.mark.parametrize("pools", [(pool("cpu"),), (pool(replicas=2),)], ids=["no such pool", "a static pool"])
def test_nodes_that_karpenter_does_not_add_need_no_template(pools: tuple[Object, ...]) -> None:
    assert findings((pool_member(),), pools) == []


def test_a_node_group_is_a_note_if_cluster_autoscaler_runs() -> None:
    own = pool_member()
    own["metadata"]["labels"] = {USAGE: "training", PRODUCT: "NVIDIA-H20", GROUP: "ng_A"}

    (note,) = findings((own,), (), LEASES=(AUTOSCALER,))

    assert (note.severity, entry_of(note)["name"]) == (Severity.INFO, "ng-a")
    assert findings((own,), (), entry_of(note), LEASES=(AUTOSCALER,)) == []
    assert findings((own,), ()) == []


def test_what_the_check_reads_is_kept() -> None:
    read = claim()
    gpu = pool(limits={"cpu": "1"}, replicas=1, template={"spec": {"startupTaints": TAINTS}})

    assert kept(Source.NODE_POOLS, {**read, "status": {**read["status"], "imageID": "x"}}) == read
    assert kept(Source.NODE_POOLS, gpu) == gpu
