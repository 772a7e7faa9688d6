"""`allowed`: what the pods of a namespace may use."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.admission import policy_with
from tests.support.objects.builders import make_node_object
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run
from webhook.cli.commands.allowed import _products, _queues
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import Document

PRODUCT = "nvidia.com/gpu.product"
NODES = [make_node_object(each, labels={PRODUCT: each}) for each in ("NVIDIA-H20", "NVIDIA-A100")]


def write(folder: Path, *more: dict[str, Any]) -> Path:
    file = folder / "cluster.json"
    file.write_text(as_list(*NODES, *more))
    return file


TYPES = {name: {"nodeUsage": {"allow": ["training"]}} for name in ("training", "inference")}
SPEC = {
    "workloadTypes": TYPES | {"research": {"nodeUsage": {"allow": ["training"]}, "allowedNamespaces": ["lab-*"]}},
    "allowedSchedulers": ["volcano", "kai-scheduler"],
    "allowedProducts": {"NVIDIA-A100": ["lab-*"]},
    "namespaceLimits": [
        {
            "namespaces": ["team-*"],
            "workloadTypes": ["training"],
            "schedulers": ["volcano"],
            "queues": ["team-*"],
            "maxCardsPerPod": 4,
        }
    ],
}
QUEUES = [
    {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {}}
    for name in ("team-a", "other")
]


@pytest.fixture
def allowed(run: Run, tmp_path: Path) -> Any:
    policy = tmp_path / "policy.json"
    head = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
    policy.write_text(json.dumps(head | {"spec": SPEC}))
    cluster = write(tmp_path, *QUEUES)
    return lambda *options: run("allowed", "--cluster", cluster, "--policy", policy, *options)


def test_allowed_is_what_policy_and_limits_leave(allowed: Any) -> None:
    (team,), (lab,) = (lines(allowed("-n", name, "-o", "json").output) for name in ("team-a", "lab-1"))

    assert (team["namespace"], team["workloadTypes"], team["maxCardsPerPod"]) == ("team-a", ["training"], 4)
    assert (team["products"], team["otherProducts"]) == (["NVIDIA-H20"], ["NVIDIA-A100"])
    assert (team["schedulers"], team["queues"]) == (["default-scheduler", "volcano"], ["team-a"])
    assert lab["workloadTypes"] == ["training", "inference", "research"]
    assert lab["products"] == ["NVIDIA-A100", "NVIDIA-H20"]
    assert (lab["queues"], lab["queuePatterns"], lab["maxCardsPerPod"]) == (["other", "team-a"], None, None)


def test_the_text_of_allowed_has_a_line_for_each(allowed: Any) -> None:
    first, policy, *rest = allowed("-n", "team-a").output.splitlines()

    assert first == "team-a:"
    assert policy.startswith("  policy          default@")
    assert rest == [
        "  workload types  training",
        "  products        NVIDIA-H20",
        "  not allowed     NVIDIA-A100",
        "  schedulers      default-scheduler, volcano",
        "  queues          team-*; in the cluster: team-a",
        "  cards of a pod  at most 4",
    ]


def test_without_an_option_the_namespace_is_default(allowed: Any) -> None:
    assert allowed().output.startswith("default:\n")


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}


@pytest.mark.parametrize(("namespace", "warning"), [("team-a", ""), ("nosuch", "the cluster has no namespace nosuch")])
def test_allowed_warns_of_a_namespace_that_does_not_exist(
    run: Run, tmp_path: Path, namespace: str, warning: str
) -> None:
    outcome = run("allowed", "-n", namespace, "--cluster", write(tmp_path, NAMESPACE))

    assert (outcome.code, outcome.errors) == (0, f"Warning: {warning}\n" if warning else "")


def test_queues_are_those_that_pods_of_the_namespace_can_name() -> None:
    queues = [
        {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "root"}, "spec": {}},
        {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": "leaf"},
            "spec": {"parentQueue": "root"},
        },
        *(
            {
                "apiVersion": "kueue.x-k8s.io/v1beta1",
                "kind": "LocalQueue",
                "metadata": {"name": f"of-{namespace}", "namespace": namespace},
                "spec": {"clusterQueue": "all"},
            }
            for namespace in ("team-a", "team-b")
        ),
    ]
    snapshot = snapshot_from_documents(Document("f", each) for each in (*NODES, *queues))

    assert sorted(_queues(snapshot, "team-a")) == ["leaf", "of-team-a"]


def test_products_are_those_of_nodes_and_names_of_the_policy_without_patterns() -> None:
    snapshot = snapshot_from_documents(Document("f", each) for each in NODES)
    limits = [{"namespaces": ["*"], "products": ["NVIDIA-B200", "AMD-*"]}]
    spec = policy_with(allowedProducts={"NVIDIA-A*": ["lab"], "MI300X": ["lab"]}, namespaceLimits=limits).spec

    assert _products(spec, snapshot) == ["MI300X", "NVIDIA-A100", "NVIDIA-B200", "NVIDIA-H20"]
