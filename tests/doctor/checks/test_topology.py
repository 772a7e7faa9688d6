"""Labels of topology domains, and requests for one domain that have no effect."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from placement_doctor.check import Finding, Severity
from placement_doctor.kept import PodsRead, kept
from placement_doctor.source import Source
from tests.controlplane.control_plane import ControlPlane
from tests.doctor.healthy import found, make_installation, node_of, objects
from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.objects.manifests import Object
from tests.support.programs.command import run_here
from webhook.policy.policy import Policy

RACK, CLIQUE, SPREAD = "topology.kubernetes.io/rack", "nvidia.com/gpu.clique", "maip.mxsf.io/spread"
OLD, NEW = "network.topology.nvidia.com/leaf", "fabric.topograph.run/tier-0"
KAI, KAI_GROUP = "kai.scheduler/topology-required-placement", "pod-group-name"
BY_RACK = policy_with(
    workloadTypes={
        "training": {"nodeUsage": {"allow": ["training"]}, "spread": {"mode": "required", "topology": "rack"}}
    }
)


def labels(*of: dict[str, str], policy: Policy | None = None, **fields: Any) -> list[Finding]:
    """Return the findings on three nodes with these labels."""
    nodes = tuple(
        node_of(pool, labels=each) for pool, each in zip(("training", "inference", "hybrid"), of, strict=True)
    )
    read = {**objects(), Source.NODES: nodes}
    given = {} if policy is None else {"policy": policy, "trial": None}
    return found(make_installation(objects=read, **given, **fields), "topology-labels")


def test_an_alias_that_nothing_uses_needs_no_label() -> None:
    assert labels({}, {}, {}) == []


@pytest.mark.parametrize("name", ["spread", "within"])
def test_a_label_that_a_policy_names_and_no_node_has(name: str) -> None:
    together = {"nodeUsage": {"allow": ["training"]}, "within": {"mode": "required", "topology": "rack"}}
    policy = BY_RACK if name == "spread" else policy_with(workloadTypes={"training": together})

    (missing,) = labels({}, {}, {}, policy=policy)

    assert missing.where == f"policy: spec.workloadTypes.training.{name}.topology"
    assert missing.what.startswith(f"no node has the label {RACK}, which policy: spec.workloadTypes.training")
    assert f"`kubectl label node hybrid-1 {RACK}=VALUE`" in missing.remedy


def test_a_label_that_a_policy_names_and_only_some_nodes_have() -> None:
    (missing,) = labels({RACK: "r1"}, {RACK: ""}, {}, policy=BY_RACK)

    assert (missing.severity, missing.where) == (Severity.WARNING, "Node hybrid-1: metadata.labels")
    assert labels({RACK: "r1"}, {RACK: "r1"}, {RACK: "r2"}, policy=BY_RACK) == []


@pytest.mark.parametrize(("value", "key"), [("rack", RACK), ("example.com/row", "example.com/row")])
@pytest.mark.parametrize("annotation", [SPREAD, "maip.mxsf.io/within"])
def test_a_label_that_a_pod_names(annotation: str, value: str, key: str) -> None:
    pods = (make_pod(name).namespace("team-a") for name in ("p", "q"))
    read = collected(*(pod.annotate(annotation, own) for pod, own in zip(pods, (value, "none"), strict=True)))

    (missing,) = labels({}, {}, {}, named_topologies=read.named_topologies)

    assert missing.what == f"no node has the label {key}, which Pod team-a/p names"


def test_nodes_without_accelerators_need_no_label() -> None:
    gpu, cpu = node_of("training", labels={RACK: "r1"}), node_of("inference")
    cpu["status"]["allocatable"].pop("nvidia.com/gpu")
    read = {**objects(), Source.NODES: (gpu, cpu)}

    assert found(make_installation(policy=BY_RACK, objects=read, trial=None), "topology-labels") == []


@pytest.mark.parametrize(
    ("nodes", "severity"),
    [
        (({OLD: "a"}, {NEW: "a"}, {}), Severity.WARNING),
        (({OLD: "a", NEW: "a"}, {}, {}), Severity.INFO),
        (({NEW: "a"}, {NEW: "a"}, {}), None),
    ],
    ids=["on different nodes", "on the same nodes", "one"],
)
def test_two_schemes_of_topograph(nodes: tuple[dict[str, str], ...], severity: Severity | None) -> None:
    findings = labels(*nodes)

    assert [each.severity for each in findings] == ([severity] if severity else [])
    assert all("two versions of topograph" in each.what for each in findings)


def test_an_nvlink_label_that_part_of_a_rack_has() -> None:
    (missing,) = labels({RACK: "r1", CLIQUE: "x.0"}, {RACK: "r1"}, {RACK: "r2"})

    assert missing.where == "Node inference-1: metadata.labels"
    assert missing.what == f"no label {CLIQUE}, which 1 other nodes of rack r1 have"


def collected(*pods: PodBuilder) -> PodsRead:
    read = PodsRead.of(make_installation())
    for each in pods:
        read.add(each.obj())
    return read


def group(api_version: str, name: str = "g", *, managed: Object | None = None, **spec: Any) -> Object:
    entry = [{"fieldsV1": {"f:spec": managed}}] if managed else []
    metadata = {"name": name, "namespace": "team-a", "managedFields": entry}
    return kept(Source.TOPOLOGY_REQUESTS, {"apiVersion": api_version, "metadata": metadata, "spec": spec})


def volcano(*plugins: str) -> Object:
    text = "actions: allocate\ntiers:\n- plugins:\n" + "".join(f"  - name: {each}\n" for each in plugins)
    metadata = {"namespace": "volcano-system", "name": "volcano-scheduler-configmap"}
    content = {"kind": "ConfigMap", "metadata": metadata, "data": {"volcano-scheduler.conf": text}}
    return kept(Source.TOPOLOGY_REQUESTS, content)


def requests(*read: Object, **fields: Any) -> list[Finding]:
    known = {**objects(), Source.TOPOLOGY_REQUESTS: read}
    return found(make_installation(objects=known, **fields), "topology-requests")


def test_volcano_ignores_a_network_topology_without_its_plugin() -> None:
    asking, other = (group("scheduling.volcano.sh/v1beta1", name, **spec) for name, spec in (("a", HARD), ("b", {})))

    (ignored,) = requests(asking, other, volcano("gang", "binpack"))

    assert ignored.what == ("no plugin network-topology-aware: Volcano ignores networkTopology of PodGroup team-a/a")
    assert requests(asking, volcano("gang", "network-topology-aware")) == []
    assert requests(other, volcano("gang")) == []
    assert requests(asking) == []


HARD = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
CONSTRAINTS: Object = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
WRITTEN: Object = {"f:schedulingConstraints": {"f:topology": {}}}


def test_constraints_that_the_api_server_dropped() -> None:
    (dropped,) = requests(group("scheduling.k8s.io/v1beta1", managed=WRITTEN))

    assert dropped.where == "PodGroup team-a/g: spec.schedulingConstraints"
    assert "GenericWorkload and TopologyAwareWorkloadScheduling" in dropped.remedy
    assert requests(group("scheduling.k8s.io/v1beta1", managed=WRITTEN, **CONSTRAINTS)) == []
    assert requests(group("scheduling.k8s.io/v1beta1", managed={"f:schedulingPolicy": {}})) == []


def test_kai_does_not_see_annotations_of_a_pod_template() -> None:
    read = collected(make_pod("p").namespace("team-a").annotate(KAI, "rack").annotate(KAI_GROUP, "g"))
    level: Object = {"topologyConstraint": {"requiredTopologyLevel": "rack"}}

    (unseen,) = requests(group("scheduling.run.ai/v2alpha2"), kai_topologies=read.kai_topologies)

    assert unseen.where == "Pod team-a/p: metadata.annotations"
    assert requests(group("scheduling.run.ai/v2alpha2", **level), kai_topologies=read.kai_topologies) == []
    assert requests(kai_topologies=read.kai_topologies) == []


def test_annotations_that_kai_does_not_see_are_in_the_order_of_the_pods() -> None:
    pods = [make_pod(name).namespace("team-a").annotate(KAI, "rack").annotate(KAI_GROUP, "g") for name in ("q", "p")]
    read = collected(*pods)

    unseen = requests(group("scheduling.run.ai/v2alpha2"), kai_topologies=read.kai_topologies)

    assert [each.where.partition(":")[0] for each in unseen] == ["Pod team-a/p", "Pod team-a/q"]


def test_a_bounded_number_of_pods_is_collected() -> None:
    pods = [make_pod(f"p{n}").namespace("team-a").annotate(SPREAD, f"k{n}").annotate(KAI, "rack") for n in range(120)]

    read = collected(*pods)

    assert (len(read.named_topologies), len(read.kai_topologies)) == (100, 100)


@pytest.fixture(scope="module")
def without_gate(
    control_plane_programs: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    folder, features = tmp_path_factory.mktemp("podgroups"), ("GenericWorkload",)
    with ControlPlane(control_plane_programs, folder, features=features, served=("scheduling.k8s.io/v1beta1",)) as made:
        yield made


def test_an_api_server_without_the_gate_keeps_the_managed_field(without_gate: ControlPlane) -> None:
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    content = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}}
    without_gate.client.create({**content, "spec": {**policy, **CONSTRAINTS}}, namespace="default")

    printed = run_here("doctor", "--kubeconfig", without_gate.kubeconfig, "--check=topology-requests", "-o", "json")

    (dropped,) = orjson.loads(printed.output)["findings"]
    assert dropped["where"] == "PodGroup default/g: spec.schedulingConstraints"
