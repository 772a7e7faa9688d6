"""`explain`: what was injected into a pod that exists, and where it is or why it waits."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.explained import EVENT, JOB, NODES, REPORT, TAINT, stored, trainer, write
from tests.support.admission import TYPE, USAGE
from tests.support.objects.builders import make_pod
from tests.support.programs.audit_records import chain_lines, make_record, write_lines
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run
from webhook.cli.commands.explain import _MOST_EVENTS, _event_lines
from webhook.policy.loader import built_in_policy

WAITS = stored(trainer("worker-0", 4))
PRIORITY_CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "a"}, "value": 1}
RUNTIME_CLASS = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "a"}, "handler": "runc"}


def test_a_pod_that_waits_has_rules_nodes_suggestion_and_events(run: Run, tmp_path: Path) -> None:
    outcome = run("explain", "pod/worker-0", "-n", "team-a", "--cluster", write(tmp_path, WAITS, EVENT))

    shown = outcome.output.splitlines()
    assert (outcome.code, outcome.errors) == (0, "")
    assert shown[:3] == [
        "team-a/worker-0: Pending",
        f"  injected by {built_in_policy().identity}",
        "    NodeUsageAffinity",
    ]
    assert f"      tolerate {TAINT}" in shown
    assert f"  its scheduler reports: {REPORT}" in shown
    assert "team-a/worker-0: Waiting" in shown
    assert "  plain: wants maip.mxsf.io/node.usage In [training, hybrid], has none" in shown
    assert "  train: wants 4 nvidia.com/gpu, free 2 of 8" in shown
    assert any(line.startswith("    - ") for line in shown[shown.index("  suggestions:") :])
    assert shown[-1] == f"    2026-05-01T08:01:00Z Warning FailedScheduling: {REPORT} (3 times)"


def test_annotations_of_the_owner_of_a_pod_have_no_effect(run: Run, tmp_path: Path) -> None:
    metadata = {"name": "job", "namespace": "team-a", "uid": "j1", "annotations": {TYPE: "training"}}
    owner = {**JOB, "metadata": metadata, "spec": {"template": make_pod().gpu(4).template()}}
    pod = stored(make_pod("worker-0").gpu(4), owner="j1")
    pod["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1"

    outcome = run("explain", "pod/worker-0", "-n", "team-a", "--cluster", write(tmp_path, pod, owner))

    assert outcome.errors.startswith(f"Warning: team-a/job: {TYPE} has no effect on the Job itself: ")


def test_a_pod_that_the_policy_denies_is_not_to_be_created_again(run: Run, tmp_path: Path) -> None:
    pod = stored(make_pod("worker-0").gpu(4))
    pod["metadata"]["annotations"] = {TYPE: "trainin"}

    outcome = run("explain", "pod/worker-0", "-n", "team-a", "--cluster", write(tmp_path, pod))

    assert f"  the policy denies it: metadata.annotations[{TYPE}]: Unsupported value" in outcome.output
    assert "create it again" not in outcome.output + outcome.errors


def test_the_pods_that_come_first_are_counted(run: Run, tmp_path: Path) -> None:
    first = stored(trainer("first", 2), uid="u0", conditions=[])
    first["metadata"]["creationTimestamp"] = "2026-05-01T07:00:00Z"
    late = stored(trainer("late", 2), uid="u2")

    outcome = run("explain", "pod/late", "-n", "team-a", "--cluster", write(tmp_path, first, late), "-o", "json")

    (found,) = lines(outcome.output)
    assert found["check"]["verdict"] == "Waiting"
    assert found["check"]["reserved"] == {"pods": 1, "nodes": {"train": 1}, "withoutRoom": 0}


def test_json_has_one_object(run: Run, tmp_path: Path) -> None:
    cluster, audit = write(tmp_path, WAITS, EVENT), tmp_path / "audit.jsonl"
    records = [make_record(0, name="worker-0"), make_record(1, name="other"), make_record(2, name="worker-0")]
    write_lines(audit, chain_lines(records))
    arguments = ("explain", "worker-0", "-n", "team-a", "--cluster", cluster, "-o", "json")

    (found,) = lines(run(*arguments).output)
    (with_record,) = lines(run(*arguments, "--audit", audit).output)

    assert (found["pod"], found["phase"], found["node"], found["scheduler"]) == (
        "team-a/worker-0",
        "Pending",
        None,
        REPORT,
    )
    assert found["injected"]["policy"] == built_in_policy().identity
    assert [each["name"] for each in found["injected"]["rules"]][:2] == ["NodeUsageAffinity", "GpuProduct"]
    assert found["check"]["nodes"]["reasons"]["wants 4 nvidia.com/gpu, free 2 of 8"] == ["train"]
    assert found["audit"] is None
    assert found["events"] == [
        {
            "time": "2026-05-01T08:01:00Z",
            "type": "Warning",
            "reason": "FailedScheduling",
            "message": REPORT,
            "count": 3,
        }
    ]
    assert with_record["audit"]["decision"] == "d0002"


def test_the_last_report_of_an_autoscaler_follows_the_events(run: Run, tmp_path: Path) -> None:
    message = "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=gpu-h100)"
    event = EVENT | {"message": message, "source": {"component": "karpenter"}}
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu-h100"},
        "spec": {"limits": {"nvidia.com/gpu": 64}},
        "status": {"resources": {"nvidia.com/gpu": "64"}},
    }
    arguments = ("explain", "pod/worker-0", "-n", "team-a", "--cluster", write(tmp_path, WAITS, event, pool))

    shown, (found,) = run(*arguments).output.splitlines(), lines(run(*arguments, "-o", "json").output)

    text = "NodePool gpu-h100 is at its limit of 64 nvidia.com/gpu"
    assert shown[-2:] == [
        "  autoscalers, their last reports:",
        f"    2026-05-01T08:01:00Z karpenter: {text}",
    ]
    assert found["autoscalers"] == [{"source": "karpenter", "time": "2026-05-01T08:01:00Z", "message": text}]


def test_a_running_pod_has_its_node_and_no_check(run: Run, tmp_path: Path) -> None:
    running = stored(trainer("runs", 2), phase="Running", conditions=[])
    running["spec"]["nodeName"] = "train"

    outcome = run("explain", "pod/runs", "-n", "team-a", "--cluster", write(tmp_path, running))

    assert outcome.output.splitlines()[0] == "team-a/runs: Running on train"
    assert "would" not in outcome.output


def test_a_pod_that_was_missed_is_judged_as_it_is_stored(run: Run, tmp_path: Path) -> None:
    """The webhook would send it to the training pool; it was stored without that."""
    missed = trainer("missed", 2).namespace("team-a").uid("u9").status(phase="Pending")

    outcome = run("explain", "pod/missed", "-n", "team-a", "--cluster", write(tmp_path, missed))

    shown = outcome.output.splitlines()
    assert shown[1] == f"  nothing was injected; the policy is {built_in_policy().identity}"
    assert "team-a/missed: Feasible on plain" in shown


_RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "small", "namespace": "team-a"},
    "spec": {
        "limits": [
            {"type": "Container", "defaultRequest": {"cpu": "900"}, "default": {"cpu": "900"}, "max": {"cpu": "1"}}
        ]
    },
}


@pytest.mark.parametrize(
    ("spec", "added"),
    [
        pytest.param({"priorityClassName": "gone", "priority": 7}, [PRIORITY_CLASS], id="its PriorityClass is deleted"),
        pytest.param({"runtimeClassName": "gone"}, [RUNTIME_CLASS], id="its RuntimeClass is deleted"),
        pytest.param({}, [_RANGE], id="a LimitRange was made later"),
    ],
)
def test_the_api_server_judges_a_stored_pod_no_more(
    run: Run, tmp_path: Path, spec: dict[str, Any], added: list[dict[str, Any]]
) -> None:
    pod = stored(trainer("worker-0", 4))
    pod["spec"] |= spec

    outcome = run("explain", "pod/worker-0", "-n", "team-a", "--cluster", write(tmp_path, pod, *added), "-o", "json")

    (found,) = lines(outcome.output)
    assert (found["check"]["verdict"], found["check"]["nodes"]["reasons"]["wants 4 nvidia.com/gpu, free 2 of 8"]) == (
        "Waiting",
        ["train"],
    )


@pytest.mark.parametrize(
    ("spec", "added", "is_suggested"),
    [
        pytest.param({}, [], True, id="nothing prevents it"),
        pytest.param({"priorityClassName": "gone"}, [PRIORITY_CLASS], False, id="its PriorityClass is deleted"),
        pytest.param({}, [_RANGE], False, id="a LimitRange gives it too much"),
    ],
)
def test_a_pod_that_the_api_server_would_reject_is_not_to_be_created_again(
    run: Run, tmp_path: Path, spec: dict[str, Any], added: list[dict[str, Any]], is_suggested: bool
) -> None:
    missed = trainer("missed", 2).namespace("team-a").uid("u9").obj()
    missed["spec"] |= spec | {"nodeSelector": {USAGE: "training"}}

    outcome = run("explain", "pod/missed", "-n", "team-a", "--cluster", write(tmp_path, missed, *added))

    assert "team-a/missed: Infeasible" in outcome.output
    assert ("create it again" in outcome.output + outcome.errors) == is_suggested


@pytest.mark.parametrize(
    ("finalizers", "ends"),
    [([], "it ends"), (["a/x", "a/y"], "it ends once these finalizers are removed: a/x, a/y")],
)
def test_a_pod_that_is_being_deleted_gets_no_node(run: Run, tmp_path: Path, finalizers: list[str], ends: str) -> None:
    pod = stored(trainer("worker-0", 1))
    pod["metadata"] |= {"deletionTimestamp": "2026-05-01T08:00:00Z", "finalizers": finalizers}
    arguments = ("explain", "pod/worker-0", "-n", "team-a", "--cluster", write(tmp_path, pod))

    shown, (found,) = run(*arguments).output.splitlines(), lines(run(*arguments, "-o", "json").output)

    assert f"  it is being deleted: no scheduler gives it a node, and {ends}" in shown
    assert not any(line.startswith("team-a/worker-0: Feasible") for line in shown)
    assert (found["check"], found["node"]) == (None, None)
    assert found["ending"] == f"it is being deleted: no scheduler gives it a node, and {ends}"


def test_pods_of_an_object_that_are_being_deleted_do_not_wait(run: Run, tmp_path: Path) -> None:
    pods = [stored(trainer(f"train-{number}", 4), f"u{number}", "j1") for number in range(5)]
    for pod in pods[:4]:
        pod["metadata"]["deletionTimestamp"] = "2026-05-01T08:00:00Z"

    outcome = run("explain", "job/train", "-n", "team-a", "--cluster", write(tmp_path, JOB, *pods))

    shown = outcome.output.splitlines()
    assert shown[0] == "team-a/train-4: Pending"
    assert shown[-1] == "and 2 more pods, 0 of them wait"


def test_a_policy_that_has_changed_since_is_named(run: Run, tmp_path: Path) -> None:
    before = stored(trainer("worker-0", 4))
    before["metadata"]["annotations"]["maip.mxsf.io/placement-policy"] = "default@000000000000"

    outcome = run("explain", "pod/worker-0", "-n", "team-a", "--cluster", write(tmp_path, before))

    wanted = f"  injected by default@000000000000; in force now: {built_in_policy().identity}"
    assert outcome.output.splitlines()[1] == wanted


@pytest.mark.parametrize("name", ["job/train", "jobs/train", "Job/train", "jobs.batch/train"])
def test_of_an_object_the_pods_that_wait_come_first(run: Run, tmp_path: Path, name: str) -> None:
    pods = [stored(trainer(f"train-{n}", 4), uid=f"p{n}", owner="j1") for n in range(5)]
    pods[0]["spec"]["nodeName"] = "train"

    outcome = run("explain", name, "-n", "team-a", "--cluster", write(tmp_path, JOB, *pods))

    heads = [line for line in outcome.output.splitlines() if not line.startswith(" ")]
    assert heads == [
        *(f"team-a/train-{n}: {state}" for n in (1, 2, 3) for state in ("Pending", "Waiting")),
        "and 2 more pods, 1 of them wait",
    ]


def test_an_object_without_pods_is_explained_as_it_would_be_created(run: Run, tmp_path: Path) -> None:
    outcome = run("explain", "job/train", "-n", "team-a", "--cluster", write(tmp_path, JOB))

    first, second, *_ = outcome.output.splitlines()
    assert first == "job/train has no pods now; as they would be created:"
    assert second == "team-a/train-: Waiting"


@pytest.mark.parametrize(("pods", "state"), [(0, (False, None)), (1, (True, "Pending"))], ids=["no pods", "a pod"])
def test_json_of_an_object_says_whether_the_pod_exists(
    run: Run, tmp_path: Path, pods: int, state: tuple[bool, str | None]
) -> None:
    objects = [stored(trainer("train-0", 4), owner="j1")][:pods]

    outcome = run("explain", "job/train", "-n", "team-a", "--cluster", write(tmp_path, JOB, *objects), "-o", "json")

    (found,) = lines(outcome.output)
    assert (found["object"], found["exists"], found["phase"]) == ("Job team-a/train", *state)


def test_check_of_a_running_pod_does_not_count_it_as_its_own_obstacle(run: Run, tmp_path: Path) -> None:
    pod = make_pod("big").gpu(8)
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(NODES[0], pod.node_name("plain").status(phase="Running")))
    arguments = ("check", "-f", "-", "--cluster", cluster)

    own, other = (run(*arguments, stdin=as_list(each)) for each in (pod, make_pod("other").gpu(8)))

    assert own.output.startswith("default/big: Feasible on plain\n  the running pod of this name counts as gone\n")
    assert other.output.startswith("default/other: Waiting\n")
    (line,) = [orjson.loads(each) for each in run(*arguments, "-o", "json", stdin=as_list(pod)).output.splitlines()]
    assert line["verdict"] == "Feasible"


def test_annotations_as_labels_and_on_the_object_itself_are_reported(run: Run, tmp_path: Path) -> None:
    labelled = make_pod("labelled").namespace("team-a").label(TYPE, "training").gpu(1).node_name("train").obj()
    job = JOB | {
        "metadata": JOB["metadata"] | {"annotations": {TYPE: "training"}},
        "spec": {"template": make_pod("x").gpu(4).template()},
    }
    cluster = write(tmp_path, {"apiVersion": "v1", "kind": "Pod", **labelled}, job)

    pod = run("explain", "pod/labelled", "-n", "team-a", "--cluster", cluster)
    owner = run("explain", "job/" + JOB["metadata"]["name"], "-n", "team-a", "--cluster", cluster)

    assert f"  labels that only have an effect as annotations: {TYPE}" in pod.output.splitlines()
    assert "on the Job itself" in owner.errors


def test_keys_of_another_domain_are_reported(run: Run, tmp_path: Path) -> None:
    other = TYPE.replace(".io/", ".com/")
    pod = make_pod("other").namespace("team-a").annotate(other, "training").annotate("kai.scheduler/queue", "q")
    content = pod.gpu(1).node_name("train").obj()
    cluster = write(tmp_path, {"apiVersion": "v1", "kind": "Pod", **content})

    explained = run("explain", "pod/other", "-n", "team-a", "--cluster", cluster)

    foreign = f"  keys of another domain have no effect: {other}; those of maip.mxsf.io do"
    assert foreign in explained.output.splitlines()


def test_the_last_events_are_shown_with_their_counts() -> None:
    events = [{"type": "Normal", "reason": f"R{number}", "message": "m", "count": number} for number in range(12)]
    events[-1] |= {"lastTimestamp": "t", "type": None}

    first, *found = _event_lines(events)

    assert first == "events, the last ones:"
    assert found[-2:] == ["   Normal R10: m (10 times)", "  t R11: m (11 times)"]
    assert len(found) == _MOST_EVENTS
    assert [*_event_lines([{"reason": "R", "message": "m", "count": 1}])][1] == "   R: m"
    assert [*_event_lines([])] == []


@pytest.mark.parametrize(("waits", "cards", "held"), [("main", 1, "image-pull"), ("side", 1, None), ("main", 0, None)])
def test_a_pod_holds_its_cards_if_its_container_with_cards_does_not_start(
    run: Run, tmp_path: Path, waits: str, cards: int, held: str | None
) -> None:
    states = {name: {"running": {"startedAt": "2026-05-01T08:00:00Z"}} for name in ("main", "side")}
    states[waits] = {"waiting": {"reason": "ImagePullBackOff"}}
    statuses = [{"name": name, "state": state} for name, state in states.items()]
    asked = trainer("worker-0", cards) if cards else make_pod("worker-0")
    pod = stored(asked.requests(cpu="1"), conditions=[], containerStatuses=statuses)
    pod["spec"]["nodeName"] = "plain"

    outcome = run("explain", "worker-0", "-n", "team-a", "--cluster", write(tmp_path, pod), "-o", "json")

    (found,) = lines(outcome.output)
    assert found["held"] == held


def test_stray_annotations_are_reported_only_for_stored_pods(run: Run, tmp_path: Path) -> None:
    """`check` warns about those of a template, because they can still be changed."""
    template = make_pod().gpu(1).annotate("maip.mxsf.io/wokload-type", "training").template()
    job = JOB | {"spec": {"parallelism": 1, "template": template}}
    pod = stored(make_pod("other").gpu(1).annotate("maip.mxsf.io/wokload-type", "training"))

    of_job, of_pod = (
        lines(run("explain", name, "-n", "team-a", "--cluster", write(tmp_path, job, pod), "-o", "json").output)
        for name in ("job/train", "pod/other")
    )

    assert [each["stray"] for each in of_job] == [[]]
    assert len(of_pod[0]["stray"]) == 1


@pytest.mark.parametrize(("cpu", "is_advised"), [("1", True), ("100", False)])
def test_a_pod_is_to_be_created_again_only_if_it_fits_with_what_the_api_server_adds(
    run: Run, tmp_path: Path, cpu: str, is_advised: bool
) -> None:
    """The LimitRange was written after the pod was stored without the webhook."""
    pod = make_pod("worker-0").namespace("team-a").uid("u1").annotate(TYPE, "training").gpu(1)
    pod = pod.creation("2026-05-01T08:00:00Z").node_selector(USAGE, "training").status(phase="Pending")
    limits = {"limits": [{"type": "Container", "defaultRequest": {"cpu": cpu}}]}
    metadata = {"name": "l", "namespace": "team-a"}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": limits}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "team-a"}}

    outcome = run("explain", "worker-0", "-n", "team-a", "--cluster", write(tmp_path, pod, limit_range, account))

    assert ("create it again" in outcome.output) is is_advised
