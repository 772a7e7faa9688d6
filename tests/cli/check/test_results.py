"""What `check`, `mutate` and `capacity` print of pods that the webhook leaves alone, and of invalid ones."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.admission import TYPE
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.workload_objects import apps, workload
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import fake_api

CARD = "nvidia.com/gpu"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n", capacity={CARD: 8})))
    return file


@pytest.mark.parametrize(
    "pod",
    [
        make_pod("p").annotate("maip.mxsf.io/wokload-type", "training"),
        make_pod("p").label(TYPE, "training"),
        make_pod("p").annotate("maip.mxsf.io/gpu-product", "NVIDIA-H20"),
    ],
    ids=["mistyped key", "label", "product without a type"],
)
def test_check_prints_the_warnings_of_a_pod_that_is_left_alone(run: Run, cluster: Path, pod: PodBuilder) -> None:
    files = ("-f", "-", "--cluster", cluster)

    checked, mutated = (run(name, *files, stdin=as_list(pod.gpu(1))) for name in ("check", "mutate"))

    warnings = [line for line in mutated.errors.splitlines() if line.startswith("Warning: ")]
    assert warnings
    assert checked.errors.splitlines() == warnings


INVALID = make_pod("ill").annotate("maip.mxsf.io/bin-packing", "true").obj()
INVALID["metadata"]["annotations"]["maip.mxsf.io/bin-packing"] = True
BESIDE_INVALID = as_list(make_pod("a"), INVALID, make_pod("b"))
MESSAGE = "Error: <stdin>: items[1]: metadata.annotations[maip.mxsf.io/bin-packing]: Invalid value: true"
JSON_OF = {
    ("mutate", "-o", "json"): ["a", "b"],
    ("mutate", "-o", "patch"): [[], None, []],
    ("capacity", "--until", "1", "-o", "json"): [1, 0, 1],
}


@pytest.mark.parametrize(("command", "expected"), JSON_OF.items(), ids=[" ".join(each) for each in JSON_OF])
def test_the_pods_beside_an_invalid_one_are_evaluated(
    run: Run, cluster: Path, command: tuple[str, ...], expected: list[Any]
) -> None:
    outcome = run(*command, "-f", "-", "--cluster", cluster, stdin=BESIDE_INVALID)

    found = [
        each.get("fits", each.get("metadata", {}).get("name")) if isinstance(each, dict) else each
        for each in lines(outcome.output)
    ]
    assert (outcome.code, found) == (2, expected)
    assert MESSAGE in outcome.errors


@pytest.mark.parametrize("command", JSON_OF, ids=" ".join)
def test_strict_stops_at_an_invalid_pod(run: Run, cluster: Path, command: tuple[str, ...]) -> None:
    outcome = run(*command, "--strict", "-f", "-", "--cluster", cluster, stdin=BESIDE_INVALID)

    assert (outcome.code, outcome.output) == (2, "")
    assert MESSAGE in outcome.errors


HALF_A_CARD = make_pod("half").requests(**{CARD: "500m"})
REFUSED = make_pod("refused").annotate(TYPE, "trainning")


@pytest.mark.parametrize(
    ("pod", "verdict", "text"),
    [(HALF_A_CARD, "Invalid", "must be an integer"), (REFUSED, "Refused", "trainning")],
    ids=["invalid", "refused"],
)
def test_check_prints_an_invalid_or_refused_pod_on_standard_output_and_its_place_on_standard_error(
    run: Run, cluster: Path, pod: PodBuilder, verdict: str, text: str
) -> None:
    outcome = run("check", "-f", "-", "--cluster", cluster, stdin=as_list(pod))

    headline, *messages = outcome.output.splitlines()
    reasons = [line for line in outcome.errors.splitlines() if ": <stdin>: items[0]: " in line]
    assert headline == f"default/{pod.obj()['metadata']['name']}: {verdict}"
    assert len(messages) == len(reasons) > 0
    assert all(line.startswith("  ") for line in messages)
    assert text in messages[0]
    assert text in reasons[0]


@pytest.mark.parametrize("command", ["check", "mutate"])
def test_invalid_pod_is_not_said_to_be_refused(run: Run, cluster: Path, command: str) -> None:
    """The API server decodes a pod before it asks the webhook, so no warning of the webhook is printed either."""
    pod = make_pod("p").requests(cpu="many").annotate(TYPE, "trainning").annotate("maip.mxsf.io/gpu-memory", "80Gi")

    outcome = run(command, "-f", "-", "--cluster", cluster, stdin=as_list(pod))

    (line,) = outcome.errors.splitlines()
    assert outcome.code == 2
    assert line.startswith("Error: <stdin>: items[0]: spec.containers[0].resources.requests[cpu]: Invalid value")
    assert "Refused" not in outcome.output


@pytest.mark.parametrize("command", ["check", "mutate"])
def test_each_error_of_a_refused_pod_is_a_line_with_its_place(run: Run, cluster: Path, command: str) -> None:
    pod = make_pod("refused").annotate(TYPE, "trainning").annotate("maip.mxsf.io/gpu-memory", "80GB").gpu(1)

    outcome = run(command, "-f", "-", "--cluster", cluster, stdin=as_list(pod))

    first, second = (line for line in outcome.errors.splitlines() if "metadata.annotations" in line)
    for line, key in ((first, "workload-type"), (second, "gpu-memory")):
        assert line.startswith(f"Refused: <stdin>: items[0]: default/refused: metadata.annotations[maip.mxsf.io/{key}]")
        assert not line.endswith(";")


def test_explain_prints_each_error_of_an_invalid_pod_on_a_line(run: Run, tmp_path: Path) -> None:
    invalid = make_pod("p").requests(cpu="many", memory="much").obj()
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("a"), invalid))

    outcome = run("explain", "p", "--cluster", file)

    found = [line for line in outcome.output.splitlines() if "must be a quantity" in line]
    assert [line.partition(": ")[0].strip() for line in found] == [
        f"spec.containers[0].resources.requests[{name}]" for name in ("cpu", "memory")
    ]


def test_mutate_warns_of_a_pod_that_the_api_server_rejects(run: Run) -> None:
    outcome = run("mutate", "-f", "-", "-o", "patch", stdin=as_list(HALF_A_CARD.annotate(TYPE, "training")))

    (warning,) = (line for line in outcome.errors.splitlines() if line.startswith("Warning: "))
    assert outcome.code == 0
    assert warning.startswith("Warning: default/half: the API server rejects this pod: spec.containers[0].resources")


def test_mutate_warns_of_a_pod_without_an_image(run: Run) -> None:
    outcome = run("mutate", "-f", "-", "-o", "patch", stdin=as_list(make_pod("p").spec(containers=[{"name": "c"}])))

    warning = "Warning: default/p: the API server rejects this pod: spec.containers[0].image: Required value"
    assert warning in outcome.errors.splitlines()


def test_a_priority_class_of_the_file_says_nothing_of_the_other_classes(run: Run, cluster: Path) -> None:
    """The cluster file has none, so its classes are not known."""
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
    pod = make_pod("p").annotate(TYPE, "training").spec(priorityClassName="other")

    outcome = run("check", "-f", "-", "--cluster", cluster, stdin=as_list(high, pod))

    assert "PriorityClass" not in outcome.errors


OTHER = make_pod("p").scheduler("other-scheduler")
NOT_KNOWN = (
    "Warning: default/p: scheduler other-scheduler: not known whether it runs: no bound pod names it. Without it, the "
    "pod stays Pending"
)


@pytest.mark.parametrize("arguments", [("check",), ("check", "--as-written"), ("capacity", "--until", "1")], ids=str)
def test_a_scheduler_that_nothing_names_is_a_warning(run: Run, cluster: Path, arguments: tuple[str, ...]) -> None:
    outcome = run(*arguments, "-f", "-", "--cluster", cluster, stdin=as_list(OTHER))

    assert (outcome.code, outcome.errors.splitlines()) == (0, [NOT_KNOWN])


def test_explain_warns_of_the_scheduler_of_a_pod_that_waits(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n"), OTHER.uid("u1").status(phase="Pending")))

    assert NOT_KNOWN in run("explain", "p", "--cluster", file).errors.splitlines()


@pytest.mark.parametrize(
    ("scheduler", "more"),
    [
        ("default-scheduler", []),
        ("volcano", []),
        ("other-scheduler", [make_pod("runs").scheduler("other-scheduler").node_name("n")]),
    ],
    ids=["the default one", "one of the policy", "one of a running pod"],
)
def test_a_scheduler_with_a_name_that_is_known_is_no_warning(
    run: Run, tmp_path: Path, scheduler: str, more: list[PodBuilder]
) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n"), *more))

    outcome = run("check", "-f", "-", "--cluster", file, stdin=as_list(make_pod("p").scheduler(scheduler)))

    assert "Warning" not in outcome.errors


def test_a_scheduler_without_a_sign_on_a_live_cluster_is_a_warning(run: Run, tmp_path: Path) -> None:
    with fake_api() as api:
        items = {"namespaces": [], "pods": [], "nodes": [make_node_object("n")]}
        api.objects = {f"/api/v1/{kind}": {"metadata": {}, "items": each} for kind, each in items.items()}
        api.objects |= {"/apis": {"groups": []}, "/apis/coordination.k8s.io/v1/leases": {"metadata": {}, "items": []}}
        outcome = run("check", "-f", "-", "--kubeconfig", api.kubeconfig(tmp_path), stdin=as_list(OTHER))

    assert (
        "Warning: default/p: scheduler other-scheduler: no sign that it runs: no Lease and no bound" in outcome.errors
    )


def test_a_bound_pod_is_evaluated_without_its_node(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    node = make_node_object("n", taints=["a=b:NoSchedule"])
    file.write_text(as_list(node, make_node_object("o"), make_pod("p").node_name("n").status(phase="Running")))

    outcome = run("check", "-f", file, "--cluster", file, "-o", "json")

    (found,) = lines(outcome.output)
    assert (outcome.code, found["verdict"], found["node"]) == (0, "Feasible", "o")
    assert "1 pod with a node: evaluated without spec.nodeName" in outcome.errors.splitlines()


@pytest.mark.parametrize("options", [(), ("--as-written",)])
def test_a_node_that_the_user_wrote_gets_no_suggestion(run: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    file, pod = tmp_path / "cluster.json", make_pod("p").node_name("n")
    file.write_text(as_list(make_node_object("n", taints=["a=b:NoSchedule"]), make_node_object("o")))

    outcome = run("check", "-f", "-", "--cluster", file, "-o", "json", *options, stdin=as_list(pod))

    assert (lines(outcome.output)[0]["verdict"], lines(outcome.output)[0]["suggestions"]) == ("Infeasible", [])


def test_capacity_counts_further_pods_of_a_stored_pod_on_all_nodes(run: Run, tmp_path: Path) -> None:
    cluster, nodes = tmp_path / "nodes.json", [make_node_object(name, capacity={CARD: "2"}) for name in ("a", "b")]
    pod = make_pod("stored").gpu(1).node_name("a").status(phase="Running")
    cluster.write_text(as_list(*nodes, pod))

    outcome = run("capacity", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(pod))

    (found,) = lines(outcome.output)
    assert (found["fits"], found["nodes"]) == (3, {"a": 1, "b": 2})
    assert "1 pod with a node: evaluated without spec.nodeName" in outcome.errors.splitlines()


@pytest.mark.parametrize(
    ("replicas", "heading"),
    [(1, None), (2, "nodes for the first replica:"), (5, "nodes for the next replica, after 4:")],
)
def test_the_nodes_of_several_replicas_state_which_one_they_are_for(
    run: Run, tmp_path: Path, replicas: int, heading: str | None
) -> None:
    cluster, nodes = tmp_path / "nodes.json", [make_node_object(name, capacity={CARD: "2"}) for name in ("a", "b")]
    cluster.write_text(as_list(*nodes))
    template = make_pod("").gpu(1).obj()
    job = apps("Deployment", replicas=replicas, template=template)

    outcome = run("check", "-f", "-", "--cluster", cluster, stdin=as_list(job))

    printed = [line.strip() for line in outcome.output.splitlines()]
    assert [line for line in printed if line.startswith("nodes for")] == ([heading] if heading else [])


@pytest.mark.parametrize("options", [(), ("--as-written",)])
def test_a_pod_without_an_image_is_invalid_and_one_of_a_template_is_evaluated(
    run: Run, cluster: Path, options: tuple[str, ...]
) -> None:
    """An API server rejects the object of a template, before there is a pod."""
    pod = make_pod("p").spec(containers=[{"name": "c"}])
    objects = as_list(pod, apps("Deployment", template=pod.template()))

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", *options, stdin=objects)

    assert outcome.code == 2
    assert [each["verdict"] for each in lines(outcome.output)] == ["Invalid", "Feasible"]
    assert "Error: <stdin>: items[0]: spec.containers[0].image: Required value" in outcome.errors


def test_pods_that_are_not_known_have_no_count_of_nodes(run: Run, cluster: Path) -> None:
    spec = {"runtimeRef": {"name": "absent"}}
    train_job = workload("trainer.kubeflow.org/v1alpha1", "TrainJob", spec)

    outcome = run("check", "-f", "-", "--cluster", cluster, stdin=as_list(train_job, make_pod("p")))

    unknown, _, known = outcome.output.partition("default/p")
    assert "Unknown" in unknown
    assert "nodes can take it" not in unknown
    assert "1 of 1 nodes can take it" in known


@pytest.mark.parametrize("command", ["check", "explain"])
def test_scores_are_below_each_other_at_the_right(run: Run, tmp_path: Path, command: str) -> None:
    file = tmp_path / "cluster.json"
    running = make_pod("r").gpu(7).requests(cpu="60").node_name("a-node").status(phase="Running")
    nodes = [make_node_object(name, capacity={CARD: 8, "cpu": 64}) for name in ("a-node", "b-node")]
    file.write_text(as_list(*nodes, running, make_pod("p").uid("u").gpu(1).status(phase="Pending")))
    pod = ("explain", "p") if command == "explain" else ("check", "-f", "-")

    outcome = run(*pod, "--cluster", file, stdin=as_list(make_pod("p").gpu(1)) if command == "check" else "")

    head, *rows = [line for line in outcome.output.splitlines() if re.match("  (node|a-node|b-node)  ", line)]
    ends = [match.end() for match in re.finditer(r"\S+", head)][1:]
    assert len(rows) == 2
    for row in rows:
        assert [match.end() for match in re.finditer(r"\S+", row)][1:] == ends
