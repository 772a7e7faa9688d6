"""`capacity`: report how many more of each pod fit, on which nodes, and what stops the next one."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.admission import TYPE, USAGE
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.storage import make_storage_class
from tests.support.objects.workload_objects import apps
from tests.support.programs.cluster_files import FEASIBLE, INFEASIBLE, MISTYPED, as_list, lines, write_cluster
from tests.support.programs.command import Outcome, Run

ONE = make_pod("one").gpu(1)


def _cluster(folder: Path, *gpus: int, others: tuple[Any, ...] = ()) -> Path:
    """Return a cluster file with a node of so many GPUs each."""
    path = folder / "cluster.json"
    nodes = [make_node_object(f"n{n}", capacity={"nvidia.com/gpu": str(gpu)}) for n, gpu in enumerate(gpus)]
    path.write_text(as_list(*nodes, *others))
    return path


def _capacity(run: Run, cluster: Path, *objects: Any, options: tuple[str, ...] = ()) -> Outcome:
    return run("capacity", "-f", "-", "--cluster", cluster, *options, stdin=as_list(*objects))


def _lines(run: Run, cluster: Path, *objects: Any, options: tuple[str, ...] = ()) -> list[Any]:
    outcome = _capacity(run, cluster, *objects, options=("-o", "json", *options))
    assert (outcome.code, outcome.errors) == (0, "")
    return lines(outcome.output)


def test_json_is_one_object_a_line_in_the_order_of_the_pods(run: Run, tmp_path: Path) -> None:
    pods = as_list(make_pod("one").namespace("team-a").gpu(1), INFEASIBLE)

    outcome = run("capacity", "-f", "-", "--cluster", write_cluster(tmp_path), "-o", "json", stdin=pods)

    one, infeasible = lines(outcome.output)
    blocks = [
        {"pool": None, "resource": "nvidia.com/gpu", "product": None, "cards": 4, "nodes": 1},
        {"pool": "training", "resource": "nvidia.com/gpu", "product": None, "cards": 0, "nodes": 1},
    ]
    message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s)."
    assert one == {
        "pod": "team-a/one",
        "fits": 4,
        "nodes": {"free": 4},
        "stoppedBy": message,
        "complete": True,
        "endedEarly": None,
        "range": [4, 4],
        "refused": False,
        "largestBlocks": blocks,
    }
    assert infeasible == one | {"pod": "default/infeasible", "fits": 0, "nodes": {}, "range": [0, 0]}
    assert (outcome.code, outcome.errors) == (0, "")


def test_text_has_the_count_the_nodes_the_message_and_the_blocks(run: Run, tmp_path: Path) -> None:
    outcome = run("capacity", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(FEASIBLE))

    assert outcome.output.splitlines() == [
        "default/feasible: 1 more fits",
        "  1 on free",
        "  the next one: 0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s).",
        "  the webhook leaves it alone: no workload type",
        "largest free blocks on one node, as the cluster stands:",
        "  pool      resource        free cards  nodes",
        "  -         nvidia.com/gpu           4      1",
        "  training  nvidia.com/gpu           0      1",
    ]


def test_each_pod_is_counted_by_itself(run: Run, tmp_path: Path) -> None:
    counts = _lines(run, _cluster(tmp_path, 8, 8), ONE, make_pod("four").gpu(4))

    assert [line["fits"] for line in counts] == [16, 4]


def test_an_object_stands_for_the_pods_of_its_template(run: Run, tmp_path: Path) -> None:
    deployment = apps("Deployment", replicas=3, template=make_pod().gpu(4).template())

    (line,) = _lines(run, _cluster(tmp_path, 8, 8), deployment)

    assert (line["pod"], line["object"], line["role"]) == ("team-a/web-", "Deployment team-a/web", "")
    assert (line["fits"], line["nodes"]) == (4, {"n0": 2, "n1": 2})
    assert "Deployment team-a/web" in _capacity(run, _cluster(tmp_path, 8), deployment).output


@pytest.mark.slow
def test_together_pods_take_turns_in_proportion_to_replicas(run: Run, tmp_path: Path) -> None:
    workers = apps("Deployment", replicas=3, template=make_pod().gpu(2).template())

    launcher, worker = _lines(run, _cluster(tmp_path, 8, 8), ONE, workers, options=("--together",))

    assert [(each["fits"], each["share"], each["turns"]) for each in (launcher, worker)] == [(3, 1, 2), (6, 3, 2)]
    assert launcher["stoppedPod"] == worker["stoppedPod"] == "team-a/web-"
    assert launcher["stoppedBy"] == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."


def test_the_text_names_the_pod_that_does_not_fit_and_the_share(run: Run, tmp_path: Path) -> None:
    workers = apps("Deployment", replicas=3, template=make_pod().gpu(4).template())

    outcome = _capacity(run, _cluster(tmp_path, 9), ONE, workers, options=("--together",))

    assert "  0 whole turns with 3 of this pod each" in outcome.output.splitlines()
    assert "  the next team-a/web-: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu." in outcome.output


def test_until_ends_the_count(run: Run, tmp_path: Path) -> None:
    cluster = _cluster(tmp_path, 8, 8)

    (line,) = _lines(run, cluster, ONE, options=("--until", "3"))

    assert (line["fits"], line["stoppedBy"], line["complete"], line["range"]) == (3, None, True, [3, 3])
    assert sum(line["nodes"].values()) == 3
    text = _capacity(run, cluster, ONE, options=("--until", "3")).output
    assert text.startswith("default/one: 3 more fit, all that were asked for\n")


def test_until_with_more_than_fit_changes_nothing(run: Run, tmp_path: Path) -> None:
    cluster = _cluster(tmp_path, 8)

    assert _lines(run, cluster, ONE, options=("--until", "9")) == _lines(run, cluster, ONE)


@pytest.mark.slow
def test_a_range_is_printed_where_chance_decides(run: Run, tmp_path: Path) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    zones = ("1", "2", "2")
    cluster = tmp_path / "cluster.json"
    cluster.write_text(
        as_list(
            *(
                make_node_object(f"n{n}", labels={"zone": zone}, capacity={"nvidia.com/gpu": "8"})
                for n, zone in enumerate(zones)
            )
        )
    )
    pod = make_pod("web").label("app", "web").affinity(together).gpu(8)

    (line,) = _lines(run, cluster, pod)

    assert (line["fits"], line["range"]) == (1, [1, 2])
    text = _capacity(run, cluster, pod).output
    assert "  1 to 2 fit in 201 runs: kube-scheduler chooses at random between nodes of equal scores\n" in text


def test_claims_of_a_stateful_set_are_created_with_its_pods(run: Run, tmp_path: Path) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
    }
    stateful_set = apps("StatefulSet", template=ONE.template(), replicas=2, volumeClaimTemplates=[claim])
    kinds = (("v1", "PersistentVolumeClaim"), ("v1", "PersistentVolume"), ("storage.k8s.io/v1", "CSIDriver"))
    lists = [{"apiVersion": version, "kind": f"{kind}List", "items": []} for version, kind in kinds]
    storage = (make_storage_class("fast", provisioner="example.com/p"), *lists)

    (line,) = _lines(run, _cluster(tmp_path, 8, others=storage), stateful_set)

    assert (line["fits"], line["complete"]) == (8, True)


@pytest.mark.parametrize("options", [(), ("--together",)])
def test_a_denied_pod_is_not_counted(run: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    outcome = _capacity(run, _cluster(tmp_path, 8), MISTYPED, options=("-o", "json", *options))

    (line,) = lines(outcome.output)
    assert outcome.code == 5
    assert (line["fits"], line["refused"], line["complete"], line["range"]) == (0, True, False, None)
    assert "trainning" in line["endedEarly"]
    assert outcome.errors.startswith("Refused: ")


def test_the_policy_is_applied_before_the_count(run: Run, tmp_path: Path) -> None:
    pod = make_pod("trainer").annotate(TYPE, "training").gpu(2)
    cluster = tmp_path / "cluster.json"
    taints = [f"{USAGE}=training:NoSchedule"]
    cluster.write_text(
        as_list(make_node_object("t", labels={USAGE: "training"}, taints=taints, capacity={"nvidia.com/gpu": "8"}))
    )

    written = _capacity(run, cluster, pod, options=("-o", "json", "--as-written"))
    admitted = [_capacity(run, cluster, pod, options=("-o", "json", *given)) for given in ((), ("--mutate",))]

    assert [lines(each.output)[0]["fits"] for each in (written, *admitted)] == [0, 4, 4]
    assert written.errors.endswith("the webhook would change or refuse default/trainer: leave --as-written out\n")


@pytest.mark.parametrize("options", [(), ("-o", "json")])
def test_without_pods_it_prints_what_nodes_prints(run: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    cluster = write_cluster(tmp_path)

    outcome = run("capacity", "--cluster", cluster, *options)

    assert outcome == run("nodes", "--cluster", cluster, *options)
    assert (outcome.code, outcome.errors) == (0, "")


def test_a_scheduler_without_a_profile_gives_no_count(run: Run, tmp_path: Path) -> None:
    configuration = tmp_path / "scheduler.yaml"
    configuration.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    pod = ONE.scheduler("other")

    outcome = _capacity(run, _cluster(tmp_path, 8), pod, options=("--scheduler-config", str(configuration)))

    assert outcome.code == 0
    assert outcome.output.startswith("default/one: not known how many more fit\n  the count ended early: ")


@pytest.mark.parametrize(
    ("arguments", "stdin", "error"),
    [
        (("-f", "nowhere.yaml", "--cluster", "CLUSTER"), "", "--filename: Invalid value"),
        (("-f", "-", "--cluster", "nowhere.json"), "POD", "--cluster: Invalid value"),
        (("-f", "-", "--cluster", "-"), "POD", "--filename and --cluster cannot both be standard input"),
        (("-f", "-", "--cluster", "CLUSTER", "--kubeconfig", "x"), "POD", "--cluster is a file"),
        (("-f", "-", "--cluster", "CLUSTER", "--until", "0"), "POD", "Invalid value for '--until'"),
        (("-f", "-", "--cluster", "CLUSTER", "--scheduler-profile", "x"), "POD", "--scheduler-profile: Unsupported"),
        (("-f", "-", "--cluster", "CLUSTER"), "{}", "<stdin>"),
        (("-f", "-", "--cluster", "CLUSTER", "--strict"), "WRONG", "spec.containers[0].resources.requests"),
        (("--cluster", "CLUSTER", "--together"), "", "Missing option '-f'"),
        (("--cluster", "CLUSTER", "--make-room"), "", "Missing option '-f'"),
    ],
)
def test_bad_usage_and_input_is_one_error(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], stdin: str, error: str
) -> None:
    cluster = str(_cluster(tmp_path, 8))
    texts = {"POD": as_list(ONE), "WRONG": as_list(make_pod("wrong").requests(cpu="many"))}

    given = [cluster if each == "CLUSTER" else each for each in arguments]
    outcome = run("capacity", *given, stdin=texts.get(stdin, stdin))

    assert (outcome.code, outcome.output) == (2, "")
    assert error in outcome.errors


def test_no_progress_is_printed_without_a_terminal(run: Run, tmp_path: Path) -> None:
    assert _capacity(run, _cluster(tmp_path, 8), ONE, options=("--until", "3")).errors == ""


def test_many_kinds_of_nodes_are_summarised(run: Run, tmp_path: Path) -> None:
    outcome = _capacity(run, _cluster(tmp_path, 1, 2, 3, 3, 4), ONE, options=("--max-nodes", "2"))

    assert outcome.output.splitlines()[1:4] == [
        "  4 on n4",
        "  3 on each of 2 nodes: n2, n3",
        "  1 to 2 on each of 2 more nodes",
    ]
