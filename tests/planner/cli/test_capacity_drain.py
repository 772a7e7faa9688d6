"""`capacity --drain`: whether the pods of nodes fit elsewhere."""

from pathlib import Path

import pytest

from tests.support.objects.builders import make_pod
from tests.support.objects.moves import budget, cards, running
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run

OBJECTS = (
    cards("a", 8),
    cards("b", 4),
    running("agent", "a", kind="DaemonSet"),
    running("web-0", "a", 2),
    running("web-1", "a", 2).spec(volumes=[{"name": "scratch", "emptyDir": {}}]),
    running("batch", "a", 2, kind="Job").scheduler("volcano"),
    make_pod("bare").node_name("a").status(phase="Running"),
    budget("web", 0),
)


def write(folder: Path, *objects: object) -> Path:
    path = folder / "cluster.json"
    path.write_text(as_list(*(objects or OBJECTS)))  # type: ignore[arg-type]
    return path


def test_json_is_one_object_of_the_drain(run: Run, tmp_path: Path) -> None:
    outcome = run("capacity", "--drain", "a", "--cluster", write(tmp_path), "-o", "json")

    (found,) = lines(outcome.output)
    pods = found.pop("pods")
    assert found == {
        "drain": ["a"],
        "fits": 2,
        "of": 3,
        "stays": ["team-a/agent"],
        "terminating": [],
        "budgetsKnown": True,
    }
    assert [(each["pod"], each["outcome"], each["to"]) for each in pods] == [
        ("default/bare", "Lost", None),
        ("team-a/batch", "Fits", "b"),
        ("team-a/web-0", "Fits", "b"),
        ("team-a/web-1", "Waiting", None),
    ]
    refusal = "the PodDisruptionBudget team-a/web allows no disruption (2 pods are healthy, 2 must be)"
    assert pods[3] == {
        "pod": "team-a/web-1",
        "controller": "ReplicaSet app",
        "from": "a",
        "to": None,
        "outcome": "Waiting",
        "message": "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable.",
        "evictionRefused": refusal,
        "losesLocalData": True,
        "losesWork": False,
    }
    assert (outcome.code, outcome.errors) == (3, "")


def test_text_has_the_pods_what_else_happens_and_the_counts_at_the_end(run: Run, tmp_path: Path) -> None:
    outcome = run("capacity", "--drain", "a", "--cluster", write(tmp_path))

    message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
    local_data = "the data are lost; kubectl drain refuses them without --delete-emptydir-data"
    refusal = "the PodDisruptionBudget team-a/web allows no disruption (2 pods are healthy, 2 must be)"
    assert outcome.output.splitlines() == [
        "drain of a:",
        "  pod           from  to  why not",
        f"  team-a/web-1  a     -   {message}",
        "  team-a/batch  a     b",
        "  team-a/web-0  a     b",
        "  1 pod without a controller: lost; kubectl drain refuses them without --force: default/bare",
        f"  1 pod with emptyDir volumes: {local_data}: team-a/web-1",
        "  1 pod of Jobs: their work begins again: team-a/batch",
        "  1 pod of other schedulers: placed here as kube-scheduler would: team-a/batch",
        "  1 pod of DaemonSets: they stay; kubectl drain refuses them without --ignore-daemonsets: team-a/agent",
        f"  3 pods whose eviction is refused now: {refusal}: team-a/batch, team-a/web-0, team-a/web-1",
        "2 of 3 pods fit elsewhere",
    ]


def test_evictions_that_a_budget_refuses_later_are_apart_from_those_refused_now(run: Run, tmp_path: Path) -> None:
    """Their replacements find no node, so the budget is used up."""
    pods = [running(f"w{number}", "a", 2) for number in range(2)]
    now = running("now", "a", 2).label("app", "other")
    budgets = (budget("one", 1), budget("none", 0, app="other"))
    cluster = write(tmp_path, cards("a", 8), cards("b", 1), *pods, now, *budgets)

    text = run("capacity", "--drain", "a", "--cluster", cluster).output
    (found,) = lines(run("capacity", "--drain", "a", "--cluster", cluster, "-o", "json").output)

    assert "  1 pod whose eviction is refused now: the PodDisruptionBudget team-a/none" in text
    assert "  1 pod whose eviction is refused later: the PodDisruptionBudget team-a/one" in text
    assert [each["pod"] for each in found["pods"] if each["evictionRefused"]] == ["team-a/now", "team-a/w1"]


@pytest.mark.parametrize(
    "nodes",
    [("--drain", "a", "b"), ("--drain", "a", "--drain", "b"), ("--drain", "a,b")],
    ids=["several values", "repeated", "commas"],
)
def test_several_nodes_are_drained(run: Run, tmp_path: Path, nodes: tuple[str, ...]) -> None:
    outcome = run("capacity", "--cluster", write(tmp_path), *nodes, "-o", "json")

    (found,) = lines(outcome.output)
    assert (found["drain"], found["fits"], found["of"]) == (["a", "b"], 0, 3)


def test_with_pods_their_capacity_after_the_drain_follows(run: Run, tmp_path: Path) -> None:
    arguments = ("capacity", "-f", "-", "--cluster", write(tmp_path, cards("a", 8), cards("b", 4)), "-o", "json")

    (before,) = lines(run(*arguments, stdin=as_list(make_pod("p").gpu(1))).output)
    drained, after = lines(run(*arguments, "--drain", "a", stdin=as_list(make_pod("p").gpu(1))).output)

    assert drained["drain"] == ["a"]
    assert (before["fits"], after["fits"], after["nodes"]) == (12, 4, {"b": 4})


def test_the_budgets_of_a_file_without_any_are_not_known(run: Run, tmp_path: Path) -> None:
    outcome = run("capacity", "--drain", "a", "--cluster", write(tmp_path, cards("a", 8)))

    title, remark, count = outcome.output.splitlines()
    assert (title, count) == ("drain of a:", "0 of 0 pods fit elsewhere")
    assert remark.startswith("  PodDisruptionBudgets are not known; `kubectl get nodes,pods,")


def test_lines_of_pods_that_fit_are_limited(run: Run, tmp_path: Path) -> None:
    pods = [running(f"p{number}", "a") for number in range(5)]

    outcome = run(
        "capacity", "--drain", "a", "--cluster", write(tmp_path, cards("a", 0), cards("b", 0), *pods), "--max-nodes", 2
    )

    assert [line.split()[0] for line in outcome.output.splitlines()[1:4]] == ["pod", "team-a/p0", "team-a/p1"]
    assert "  and 3 more that fit" in outcome.output.splitlines()
    assert outcome.output.splitlines()[-1] == "5 of 5 pods fit elsewhere"


def test_an_unknown_node_is_an_error_with_the_nearest_names(run: Run, tmp_path: Path) -> None:
    nodes = [cards(name, 1) for name in ("gpu-node-1", "gpu-node-2", "gpu-node-3", "other")]

    outcome = run("capacity", "--drain", "gpu-nod-2", "--cluster", write(tmp_path, *nodes))

    nearest = "gpu-node-2, gpu-node-3, gpu-node-1"
    assert outcome.code == 2
    assert outcome.errors == (
        f'Error: --drain: Invalid value: "gpu-nod-2"; the cluster has no such node; the nearest names: {nearest}\n'
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param(("--make-room",), "Missing option '-f'", id="make room for nothing"),
        pytest.param(
            ("a", "-f", "x"), "Got unexpected extra argument (a); files follow -f, nodes --drain.", id="stray argument"
        ),
        pytest.param(("-f", "x", "--make-room", "--drain", "a"), "leave --drain out", id="make room on drained nodes"),
        pytest.param(("-f", "x", "--make-room", "--together"), "leave --together out", id="make room for several"),
    ],
)
def test_flags_that_cannot_be_together(run: Run, arguments: tuple[str, ...], error: str) -> None:
    outcome = run("capacity", "--cluster", "missing.json", *arguments)

    assert outcome.code == 2
    assert error in outcome.errors


def test_a_malformed_owner_names_the_pod(run: Run, tmp_path: Path) -> None:
    pod = running("p", "a").obj()
    pod["metadata"]["ownerReferences"] = "x"

    outcome = run("capacity", "--drain", "a", "--cluster", write(tmp_path, cards("a", 1), pod))

    assert outcome.code == 2
    assert 'Pod team-a/p: metadata.ownerReferences: Invalid value: "x"; must be a list' in outcome.errors


def test_a_malformed_toleration_of_a_running_pod_names_the_pod(run: Run, tmp_path: Path) -> None:
    pod = running("p", "a").spec(tolerations=[{"key": 1}])

    outcome = run("capacity", "--drain", "a", "--cluster", write(tmp_path, cards("a", 1), pod))

    assert outcome.code == 2
    assert "Pod team-a/p: spec.tolerations[0].key: Invalid value: 1" in outcome.errors
