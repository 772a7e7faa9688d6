"""`check` reports whether the pods of a gang fit together, for pods as written and for jobs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.admission import DOMAIN
from tests.support.objects.batch_objects import KUEUE_TOPOLOGY, pod_group, topology, volcano_configuration, workload
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.policy_objects import policy
from tests.support.objects.workloads import SAMPLES
from tests.support.programs.cluster_files import as_list, lines, write_cluster
from tests.support.programs.command import Run

WORKER = make_pod("worker").annotate(f"{DOMAIN}/gang", "train").gpu(2)
TF_JOB = next(each for each in SAMPLES if each.kind == "TFJob")
JOB = next(each for each in SAMPLES if (each.group, each.kind) == ("batch", "Job"))
VOLCANO_JOB = next(each for each in SAMPLES if (each.group, each.kind) == ("batch.volcano.sh", "Job"))


def of(size: int, pod: PodBuilder = WORKER) -> PodBuilder:
    return pod.annotate(f"{DOMAIN}/gang-size", str(size))


@pytest.mark.parametrize(
    ("pod", "code", "verdict", "fit"),
    [
        (of(2), 0, "Feasible", 2),
        (of(3), 4, "Infeasible", 2),
        # The other node is full now, and could hold four.
        (of(6, WORKER.toleration(operator="Exists")), 3, "Waiting", 2),
    ],
)
@pytest.mark.parametrize("option", [[], ["--mutate"]])
def test_json_has_the_verdict_on_the_gang(
    run: Run, tmp_path: Path, pod: PodBuilder, code: int, verdict: str, fit: int, option: list[str]
) -> None:
    cluster = write_cluster(tmp_path)

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", *option, stdin=as_list(pod))

    (line,) = lines(outcome.output)
    size = int(pod.obj()["metadata"]["annotations"][f"{DOMAIN}/gang-size"])
    assert (outcome.code, line["verdict"]) == (code, verdict)
    assert line["gang"] == {"name": "train", "size": size, "fit": fit, "isComplete": True}


def test_text_has_the_count_and_the_start_in_part(run: Run, tmp_path: Path) -> None:
    outcome = run("check", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(of(3)))

    assert "2 of 3 pods of gang train fit now; no more than 2 would fit on an empty cluster" in outcome.output
    assert outcome.output.count("of 3 pods of gang train fit now") == 1
    assert "2 of the 3 pods of gang train would start and hold what they request" in outcome.output


def test_text_mentions_a_gang_that_fits(run: Run, tmp_path: Path) -> None:
    outcome = run("check", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(of(2)))

    assert "worker: Feasible on free\n" in outcome.output
    assert "  2 of 2 pods of gang train fit now\n" in outcome.output


def test_running_pods_of_the_gang_count(run: Run, tmp_path: Path) -> None:
    cluster = write_cluster(tmp_path, of(3, WORKER).node_name("free"))

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(of(2)))

    (line,) = lines(outcome.output)
    assert (line["verdict"], line["gang"]["fit"]) == ("Feasible", 2)


def test_pods_of_a_job_that_must_run_together_are_counted(run: Run, tmp_path: Path) -> None:
    job = TF_JOB.object(make_pod("").gpu(1).template(), 6)

    text = run("check", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(job))
    (line,) = lines(
        run("check", "-f", "-", "--cluster", write_cluster(tmp_path), "-o", "json", stdin=as_list(job)).output
    )

    assert (line["fits"], line["gang"]["size"], line["gang"]["fit"]) == (4, 6, 4)
    assert "4 of the 6 pods that must run together would start and hold what they request" in text.output


@pytest.mark.parametrize(("pods", "verdict", "node"), [(4, "Feasible", "b"), (5, "Infeasible", None)])
def test_pods_of_an_object_run_in_the_domain_of_their_pod_group(
    run: Run, tmp_path: Path, pods: int, verdict: str, node: str | None
) -> None:
    """Rack a has two cards on an empty node, and rack b four cards on a node that is in use."""
    in_a_rack = {"topology": [{"key": "rack"}]}
    group = pod_group("train", group="scheduling.k8s.io", members=pods, schedulingConstraints=in_a_rack)
    racks = [
        make_node_object(name, labels={"rack": name}, capacity={"nvidia.com/gpu": cards})
        for name, cards in (("a", 2), ("b", 4))
    ]
    cluster, native = tmp_path / "cluster.json", tmp_path / "policy.json"
    cluster.write_text(as_list(*racks, make_pod("other").requests(cpu="1").node_name("b"), group))
    native.write_text(json.dumps(policy("native", schedulers={"default-scheduler": {"backend": "native"}})))
    job = JOB.object(of(pods, make_pod("").gpu(1).spec(schedulingGroup={"podGroupName": "train"})).template(), pods)

    outcome = run("check", "-f", "-", "--cluster", cluster, "--policy", native, "-o", "json", stdin=as_list(job))

    (line,) = lines(outcome.output)
    assert (line["verdict"], line["node"]) == (verdict, node)


RACK = "topology.kubernetes.io/rack"
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "u", "controller": True}


def queued_job(pods: int) -> dict[str, Any]:
    pod = make_pod("").gpu(1).annotate(f"{DOMAIN}/workload-type", "training").annotate(f"{DOMAIN}/within", "rack")
    job: dict[str, Any] = JOB.object(pod.annotate(f"{DOMAIN}/within-mode", "required").template(), pods)
    job["metadata"] |= {"labels": {"kueue.x-k8s.io/queue-name": "q"}, "namespace": "default"}
    job["spec"]["selector"] = {"matchLabels": {"job": "web"}}
    return job


@pytest.mark.parametrize(
    ("others", "verdict", "room"),
    [
        pytest.param([], "Feasible", 4, id="empty"),
        pytest.param(
            [make_pod(f"own-{each}").label("job", "web").gpu(1).node_name("a") for each in range(4)],
            "Feasible",
            4,
            id="its pods run",
        ),
        pytest.param(
            [
                workload("w", make_pod("").gpu(1).obj(), [RACK], (["a"], 4))
                | {"metadata": {"name": "w", "namespace": "default", "ownerReferences": [OWNER]}}
            ],
            "Feasible",
            4,
            id="its pods are assigned",
        ),
        pytest.param([make_pod("other").gpu(1).node_selector(RACK, "a")], "Waiting", 3, id="a pod waits before it"),
    ],
)
def test_room_of_a_domain_is_that_without_the_object_and_with_the_pods_before_it(
    run: Run, tmp_path: Path, others: list[Any], verdict: str, room: int
) -> None:
    labels = {RACK: "a", f"{DOMAIN}/node.usage": "training"}
    # Each pod has room on the node without a rack.
    nodes = [make_node_object("a", labels=labels, capacity={"nvidia.com/gpu": 4})]
    nodes += [make_node_object("z", labels={f"{DOMAIN}/node.usage": "training"}, capacity={"nvidia.com/gpu": 4})]
    cluster, of_kueue = tmp_path / "cluster.json", tmp_path / "policy.json"
    cluster.write_text(as_list(*nodes, topology("racks", KUEUE_TOPOLOGY, RACK), *others))
    of_kueue.write_text(json.dumps(policy("kueue", queueing="kueue", workloadObjects={"mutateTemplates": True})))

    outcome = run(
        "check", "-f", "-", "--cluster", cluster, "--policy", of_kueue, "-o", "json", stdin=as_list(queued_job(4))
    )

    (line,) = lines(outcome.output)
    assert (line["verdict"], [each["fits"] for each in line["domains"]]) == (verdict, [room])


@pytest.mark.parametrize("within", [True, False])
def test_volcano_job_whose_domain_is_ignored_is_warned_of(run: Run, tmp_path: Path, *, within: bool) -> None:
    job = VOLCANO_JOB.object(make_pod("").gpu(1).template(), 2)
    job["spec"] |= {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}} if within else {}
    chart = volcano_configuration("tiers:\n- plugins:\n  - name: gang\n")

    outcome = run("check", "-f", "-", "--cluster", write_cluster(tmp_path, chart), stdin=as_list(job))

    why = "Volcano ignores the network topology of the pods: its configuration has no plugin network-topology-aware"
    assert (why in outcome.errors) == within


@pytest.mark.parametrize(
    ("scheduler", "verdict"), [("default-scheduler", "Infeasible"), ("other-scheduler", "Waiting")]
)
def test_a_gang_of_a_scheduler_that_no_policy_names_is_not_infeasible(
    run: Run, tmp_path: Path, scheduler: str, verdict: str
) -> None:
    """It may have other rules."""
    pod = of(9, WORKER.scheduler(scheduler))

    outcome = run("check", "-f", "-", "--cluster", write_cluster(tmp_path), "-o", "json", stdin=as_list(pod))

    assert lines(outcome.output)[0]["verdict"] == verdict


@pytest.mark.parametrize(
    ("taints", "block"), [(["example.com/soon"], "4 nvidia.com/gpu on 1 node"), ([], "8 nvidia.com/gpu on 1 node")]
)
def test_free_cards_for_a_gang_are_not_on_nodes_with_a_temporary_taint_of_the_policy(
    run: Run, tmp_path: Path, taints: list[str], block: str
) -> None:
    nodes = [make_node_object("a", capacity={"nvidia.com/gpu": 4})]
    nodes += [make_node_object("b", taints=["example.com/soon:NoSchedule"], capacity={"nvidia.com/gpu": 8})]
    cluster, own = tmp_path / "cluster.json", tmp_path / "policy.json"
    cluster.write_text(as_list(*nodes))
    own.write_text(json.dumps(policy("own", temporaryTaints=taints)))
    pod = of(7, WORKER.toleration(operator="Exists"))

    outcome = run("check", "-f", "-", "--cluster", cluster, "--policy", own, "-o", "json", stdin=as_list(pod))

    assert f"largest free block: {block}" in lines(outcome.output)[0]["message"]


def test_a_gang_whose_scheduler_has_no_profile_is_unknown(run: Run, tmp_path: Path) -> None:
    configuration = tmp_path / "scheduler.yaml"
    configuration.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: default-scheduler}]\n"
    )
    job = TF_JOB.object(make_pod("").gpu(1).scheduler("other").template(), 6)
    given = ("--cluster", write_cluster(tmp_path), "--scheduler-config", configuration, "-o", "json")

    outcome = run("check", "-f", "-", *given, stdin=as_list(job))

    assert (outcome.code, "Traceback" in outcome.errors) == (3, False)
    assert {line["verdict"] for line in lines(outcome.output)} == {"Unknown"}


@pytest.mark.parametrize(("members", "verdict"), [(2, "Feasible"), (4, "Infeasible")])
@pytest.mark.parametrize("is_pod", [True, False])
def test_a_pod_group_that_needs_more_pods_than_the_gang_has_never_starts(
    run: Run, tmp_path: Path, members: int, verdict: str, is_pod: bool
) -> None:
    cluster, native = tmp_path / "cluster.json", tmp_path / "policy.json"
    group = pod_group("train", group="scheduling.k8s.io", members=members)
    cluster.write_text(as_list(make_node_object("n", capacity={"nvidia.com/gpu": 8}), group))
    native.write_text(json.dumps(policy("native", schedulers={"default-scheduler": {"backend": "native"}})))
    pod = of(
        2, make_pod("p").annotate(f"{DOMAIN}/gang", "train").gpu(1).spec(schedulingGroup={"podGroupName": "train"})
    )
    asked = pod if is_pod else JOB.object(pod.template(), 2)

    outcome = run("check", "-f", "-", "--cluster", cluster, "--policy", native, "-o", "json", stdin=as_list(asked))

    (line,) = lines(outcome.output)
    assert line["verdict"] == verdict
    assert ("PodGroup train needs 4 pods, and the gang has 2: it never starts" in line["message"]) is (members == 4)
