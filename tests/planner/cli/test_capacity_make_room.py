"""`capacity --make-room`: the pods to move so that a pod fits."""

from pathlib import Path
from typing import Any

from tests.support.objects.builders import make_pod
from tests.support.objects.moves import budget, cards, running
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run

BIG = make_pod("big").gpu(8)
_CORE_KINDS = ("PersistentVolumeClaim", "PersistentVolume")
_CSI_KINDS = ("CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttachment")
OBJECTS = (cards("a", 8), cards("b", 4), cards("c", 4), running("web", "a", 4))


def write(folder: Path, *objects: Any) -> Path:
    path = folder / "cluster.json"
    path.write_text(as_list(*objects))
    return path


def room(run: Run, cluster: Path, *pods: Any) -> list[Any]:
    outcome = run("capacity", "-f", "-", "--cluster", cluster, "--make-room", "-o", "json", stdin=as_list(*pods))
    assert (outcome.code, outcome.errors) == (0, "")
    return [each["makeRoom"] for each in lines(outcome.output)]


def test_json_has_the_moves_and_their_commands(run: Run, tmp_path: Path) -> None:
    no_budgets = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudgetList", "items": []}

    (found,) = room(run, write(tmp_path, *OBJECTS, no_budgets), BIG)

    delete = "kubectl delete pod web --namespace team-a"
    assert found == {
        "verdict": "Moves",
        "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "node": "a",
        "boundTo": "a",
        "moves": [
            {
                "pod": "team-a/web",
                "controller": "ReplicaSet app",
                "from": "a",
                "to": "b",
                "cordon": ["a"],
                "nodesThatFit": 2,
                "anyOfThemDoes": True,
                "losesLocalData": False,
                "losesWork": False,
                "command": delete,
            }
        ],
        "commands": ["kubectl cordon a", delete, "kubectl uncordon a"],
        "budgetsKnown": True,
        "tried": {"nodes": 1, "sets": 1, "moves": 1, "complete": True, "notMoved": {}},
    }


def test_there_is_no_room_to_make_for_a_malformed_pod(run: Run, tmp_path: Path) -> None:
    workload = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}}
    malformed = {**workload, "spec": {"replicas": 1, "template": {"metadata": {}, "spec": [None]}}}

    arguments = ("capacity", "-f", "-", "--cluster", write(tmp_path, *OBJECTS), "--make-room", "-o", "json")
    outcome = run(*arguments, stdin=as_list(malformed, BIG))

    assert outcome.code == 2
    assert outcome.errors == "Error: <stdin>: items[0]: spec.template: spec: Invalid value: [null]; must be an object\n"
    first, second = lines(outcome.output)
    assert (first["makeRoom"], second["makeRoom"]["verdict"]) == (None, "Moves")


def test_text_reports_that_budgets_are_unknown(run: Run, tmp_path: Path) -> None:
    texts = [
        run("capacity", "-f", "-", "--cluster", write(tmp_path, *objects), "--make-room", stdin=as_list(BIG)).output
        for objects in (OBJECTS, (*OBJECTS, budget("web", 1)))
    ]

    assert ["PodDisruptionBudgets are not known; `kubectl get" in each for each in texts] == [True, False]
    assert all("to make room on a, move 1 pod" in each for each in texts)


def test_text_has_the_moves_and_their_commands(run: Run, tmp_path: Path) -> None:
    job = running("web", "a", 4, kind="Job").spec(volumes=[{"name": "scratch", "emptyDir": {}}])
    cluster = write(tmp_path, *OBJECTS[:3], job, budget("web", 1))

    arguments = ("capacity", "-f", "-", "--cluster", cluster, "--make-room", "--as-written")
    outcome = run(*arguments, stdin=as_list(BIG))

    losses = "its work begins again; the data of its emptyDir volumes are lost"
    eviction = '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web","namespace":"team-a"}}'
    assert outcome.output.splitlines()[:10] == [
        "default/big: 0 more fit",
        "  the next one: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "  to make room on a, move 1 pod:",
        f"    1. team-a/web of Job app from a to b (or to another of the 2 nodes that fit); {losses}",
        "  commands, in this order; between the moves, wait until the new pod is bound:",
        "    kubectl cordon a",
        f"    echo '{eviction}' | kubectl create --raw /api/v1/namespaces/team-a/pods/web/eviction -f -",
        "    kubectl uncordon a",
        "  then the pod fits on a, if no other pod takes the room first",
        "largest free blocks on one node, as the cluster stands:",
    ]


def test_a_pod_that_fits_needs_no_room(run: Run, tmp_path: Path) -> None:
    fits, moved = room(run, write(tmp_path, *OBJECTS), make_pod("small").gpu(1), BIG)

    assert (fits["verdict"], fits["moves"], fits["tried"]) == ("Fits", [], None)
    assert moved["verdict"] == "Moves"


def test_nodes_are_cordoned_for_a_move_whose_target_matters(run: Run, tmp_path: Path) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "app"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = make_pod("p").gpu(1).affinity(affinity).namespace("team-a").label("app", "app")
    objects = [cards(name, 1) for name in "abc"]

    (found,) = room(
        run, write(tmp_path, *objects, running("web", "a")), pod.node_selector("kubernetes.io/hostname", "a")
    )

    assert [each["cordon"] for each in found["moves"]] == [["a", "c"]]
    commands = [command for command in found["commands"] if "cordon" in command]
    assert commands == ["kubectl cordon a", "kubectl cordon c", "kubectl uncordon c", "kubectl uncordon a"]


def test_a_further_pod_of_a_stateful_set_gets_room(run: Run, tmp_path: Path) -> None:
    stateful_set = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 2,
            "template": BIG.label("app", "db").template(),
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClassName": "local"}}],
        },
    }
    kinds = {"v1": ("PersistentVolumeClaim", "PersistentVolume"), "storage.k8s.io/v1": _CSI_KINDS}
    empty = [
        {"apiVersion": version, "kind": f"{kind}List", "items": []}
        for version, found in kinds.items()
        for kind in found
    ]
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }

    (found,) = room(run, write(tmp_path, *OBJECTS, *empty, storage_class), stateful_set)

    assert (found["verdict"], [each["pod"] for each in found["moves"]]) == ("Moves", ["team-a/web"])


def test_without_a_solution_it_says_what_was_tried(run: Run, tmp_path: Path) -> None:
    cluster = write(
        tmp_path, cards("a", 8), cards("b", 2), running("web", "a", 4), running("agent", "b", 1, "DaemonSet")
    )

    arguments = ("capacity", "-f", "-", "--cluster", cluster, "--make-room", "--as-written")
    outcome = run(*arguments, stdin=as_list(BIG))

    assert outcome.output.splitlines()[2:4] == [
        "  no moves make room: 1 set of 1 pod tried on 1 node",
        "  not moved: 1 pod of a DaemonSet",
    ]


def test_names_in_commands_are_quoted(run: Run, tmp_path: Path) -> None:
    pod = running("web; rm -rf /", "a", 4)

    (found,) = room(run, write(tmp_path, *OBJECTS[:3], pod, budget("x", 1, app="other")), BIG)

    assert found["moves"][0]["command"] == "kubectl delete pod 'web; rm -rf /' --namespace team-a"


def test_evictions_of_kube_scheduler_are_named_with_the_budgets_that_they_violate(run: Run, tmp_path: Path) -> None:
    objects = cards("a", 8), *(running(name, "a", 4) for name in ("one", "two")), budget("web", 0)
    cluster, big = write(tmp_path, *objects), make_pod("big").spec(priority=9).gpu(4)

    (found,) = room(run, cluster, big)
    text = run("capacity", "-f", "-", "--cluster", cluster, "--make-room", stdin=as_list(big)).output

    assert found["preemption"] == {
        "node": "a",
        "victims": ["team-a/two", "team-a/one"],
        "violates": ["team-a/web"],
        "isExact": False,
        "why": "1 of these 2: they are equal to kube-scheduler",
    }
    assert "\n".join(text.splitlines()[3:6]) == (
        "  without moves, kube-scheduler would evict 1 of these 2 pods on a: team-a/two, team-a/one\n"
        "  violates PodDisruptionBudget team-a/web\n"
        "  not certain: 1 of these 2: they are equal to kube-scheduler"
    )
