"""`check`: report which node can take a pod, and why the others cannot."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.admission import TYPE, USAGE
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.objects.workload_objects import apps
from tests.support.programs.cluster_files import (
    FEASIBLE,
    INFEASIBLE,
    LOAD,
    MISTYPED,
    NODES,
    TRAINING,
    WAITING,
    as_list,
    lines,
    write_cluster,
)
from tests.support.programs.command import Run
from webhook.cli.output.yaml_text import to_yaml

INFEASIBLE_MESSAGE = (
    "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s). "
    "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)
KEYS = ["pod", "verdict", "node", "nodes", "message", "scores", "suggestions", "unmodelled", "qosClass"]


def write_cluster_with_room(folder: Path) -> Path:
    """Return a cluster file whose training node is empty."""
    path = folder / "cluster.json"
    path.write_text(as_list(*NODES))
    return path


@pytest.mark.parametrize(
    ("pods", "code"),
    [
        ([FEASIBLE], 0),
        ([WAITING], 3),
        ([INFEASIBLE], 4),
        ([FEASIBLE, WAITING], 3),
        ([WAITING, INFEASIBLE, FEASIBLE], 4),
    ],
    ids=["feasible", "waiting", "infeasible", "one waits", "one of each"],
)
@pytest.mark.parametrize("output", ["text", "json"])
def test_the_code_is_that_of_the_worst_verdict(
    run: Run, tmp_path: Path, pods: list[PodBuilder], code: int, output: str
) -> None:
    outcome = run("check", "-f", "-", "--cluster", write_cluster(tmp_path), "-o", output, stdin=as_list(*pods))

    assert (outcome.code, outcome.errors) == (code, "")


def test_json_is_one_object_a_line_in_the_order_of_the_pods(run: Run, tmp_path: Path) -> None:
    pods = as_list(INFEASIBLE, FEASIBLE.namespace("team-a"), WAITING)

    outcome = run("check", "-f", "-", "--cluster", write_cluster(tmp_path), "-o", "json", stdin=pods)

    infeasible, feasible, waiting = lines(outcome.output)
    assert [list(each) for each in (infeasible, feasible, waiting)] == [KEYS] * 3
    assert infeasible == {
        "pod": "default/infeasible",
        "verdict": "Infeasible",
        "node": None,
        "nodes": {
            "total": 2,
            "feasible": 0,
            "reasons": {
                "untolerated taint maip.mxsf.io/node.usage=training:NoSchedule": ["train"],
                "wants 16 nvidia.com/gpu, free 4 of 4": ["free"],
            },
        },
        "message": INFEASIBLE_MESSAGE,
        "scores": {},
        "suggestions": infeasible["suggestions"],
        "unmodelled": [],
        "qosClass": "BestEffort",
    }
    assert (feasible["pod"], feasible["verdict"], feasible["node"]) == ("team-a/feasible", "Feasible", "free")
    taint = "untolerated taint maip.mxsf.io/node.usage=training:NoSchedule"
    assert feasible["nodes"] == {"total": 2, "feasible": 1, "reasons": {taint: ["train"]}}
    assert (waiting["verdict"], waiting["node"]) == ("Waiting", None)
    assert waiting["message"] == (
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. "
        "preemption: 0/2 nodes are available: "
        "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    )


def test_scores_are_weighted_and_add_up(run: Run, tmp_path: Path) -> None:
    pod = make_pod("anywhere").toleration(operator="Exists").requests(cpu="1")

    outcome = run("check", "-f", "-", "--cluster", write_cluster(tmp_path), "-o", "json", stdin=as_list(pod))

    (placement,) = lines(outcome.output)
    assert set(placement["scores"]) == {"free", "train"}
    for scores in placement["scores"].values():
        assert next(iter(scores)) == "total"
        assert scores["total"] == sum(score for plugin, score in scores.items() if plugin != "total")
    best = max(placement["scores"].values(), key=lambda scores: scores["total"])["total"]
    assert placement["node"] == min(name for name, scores in placement["scores"].items() if scores["total"] == best)


def test_text_has_verdict_node_and_message(run: Run, tmp_path: Path) -> None:
    outcome = run("check", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(FEASIBLE, INFEASIBLE))

    lines = outcome.output.splitlines()
    assert "default/feasible: Feasible on free" in lines
    assert "  1 of 2 nodes can take it" in lines
    assert "default/infeasible: Infeasible" in lines
    assert f"  {INFEASIBLE_MESSAGE}" in lines
    assert "\x1b" not in outcome.output


def test_the_packing_profiles_choose_the_fuller_node(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    nodes = [make_node_object(name, capacity={"nvidia.com/gpu": 8}) for name in ("empty", "fuller")]
    cluster.write_text(as_list(*nodes, make_pod("load").node_name("fuller").requests(cpu="16", memory="64Gi").gpu(1)))
    pod = as_list(make_pod("small").requests(cpu="1", memory="1Gi"))

    chosen = {
        profile: lines(
            run(
                "check", "-f", "-", "--cluster", cluster, "--scheduler-profile", profile, "-o", "json", stdin=pod
            ).output
        )[0]["node"]
        for profile in ("default", "binpack", "pack-gpus")
    }

    assert chosen == {"default": "empty", "binpack": "fuller", "pack-gpus": "fuller"}


def test_the_policy_is_applied_unless_the_pods_are_evaluated_as_written(run: Run, tmp_path: Path) -> None:
    """`--mutate` asks for the default."""
    arguments = ("check", "-f", "-", "--cluster", write_cluster(tmp_path), "-o", "json")
    pod = as_list(TRAINING)

    found = {
        option: lines(run(*arguments, *option, stdin=pod).output)[0]["node"]
        for option in ((), ("--mutate",), ("--as-written",))
    }

    assert found == {(): "train", ("--mutate",): "train", ("--as-written",): "free"}


def test_the_first_suggestion_for_an_annotated_pod_as_written_is_the_policy(run: Run, tmp_path: Path) -> None:
    arguments = ("check", "-f", "-", "--cluster", write_cluster_with_room(tmp_path), "-o", "json")
    pod = as_list(make_pod("trainer").annotate(TYPE, "training").gpu(8))

    as_it_stands = run(*arguments, "--as-written", stdin=pod)
    mutated = run(*arguments, stdin=pod)

    (answer,) = lines(as_it_stands.output)
    assert (as_it_stands.code, as_it_stands.errors) == (4, "")
    assert answer["suggestions"][0] == (
        "leave --as-written out: as the webhook admits the pod (workload type training), 1 of 2 nodes can take it"
    )
    assert lines(mutated.output)[0]["nodes"]["feasible"] == 1


def test_suggestions_name_annotations(run: Run, tmp_path: Path) -> None:
    """A pod without a workload type gets the change of the pod, too."""
    arguments = ("check", "-f", "-", "--cluster", write_cluster_with_room(tmp_path), "-o", "json")
    product = f"{TYPE.partition('/')[0]}/gpu-product"
    pods = [
        make_pod("trainer").annotate(TYPE, "inference").gpu(8),
        make_pod("plain").gpu(8),
        TRAINING.annotate(product, "X"),
    ]

    typed, plain, _ = lines(run(*arguments, stdin=as_list(*pods)).output)

    assert typed["suggestions"][0] == f"set {TYPE}: training instead of inference: 1 node would fit"
    assert plain["suggestions"] == [
        f"set {TYPE}: training: 1 node would fit",
        "1 node would fit if the pod tolerated maip.mxsf.io/node.usage=training",
        *plain["suggestions"][2:],
    ]


def test_a_suggested_annotation_is_proven_with_the_scheduler_that_it_selects(run: Run, tmp_path: Path) -> None:
    """kube-scheduler keeps the room of the pods that it nominated, and Volcano does not."""
    node = make_node_object("n", labels={USAGE: "inference"}, capacity={"nvidia.com/gpu": 2})
    first = make_pod("first").gpu(2).obj() | {"status": {"phase": "Pending", "nominatedNodeName": "n"}}
    pod, suggested = as_list(make_pod("trainer").annotate(TYPE, "training").gpu(2)), []
    for number, objects in enumerate(([node], [node, first])):
        path = tmp_path / f"{number}.json"
        path.write_text(as_list(*objects))
        (line,) = lines(run("check", "-f", "-", "--cluster", path, "-o", "json", stdin=pod).output)
        suggested.append(any("inference instead of training" in each for each in line["suggestions"]))

    assert suggested == [True, False]


def test_room_for_all_replicas_is_looked_for_behind_the_pods_that_a_suggestion_removes(
    run: Run, tmp_path: Path
) -> None:
    """The second replica finds no pod of lower priority to evict."""
    low = make_pod("low").node_name("n").spec(priority=-3)
    large = make_pod("large").node_name("n").requests(cpu="7")
    path = tmp_path / "cluster.json"
    path.write_text(as_list(make_node_object("n", capacity={"cpu": 8, "pods": 2}), low, large))
    replicas = apps("ReplicaSet", replicas=2, template=make_pod("a").label("app", "web").requests(cpu="3").template())

    outcome = run("check", "-f", "-", "--cluster", path, "-o", "json", stdin=as_list(replicas))

    (line,) = lines(outcome.output)
    assert (line["verdict"], line["fits"], line["suggestions"]) == ("Waiting", 0, [])


def test_the_policy_is_suggested_for_a_pod_that_then_waits(run: Run, tmp_path: Path) -> None:
    arguments = ("check", "-f", "-", "--cluster", write_cluster(tmp_path), "--as-written", "-o", "json")

    outcome = run(*arguments, stdin=as_list(make_pod("trainer").annotate(TYPE, "training").gpu(8)))

    assert lines(outcome.output)[0]["suggestions"][0] == (
        "leave --as-written out: as the webhook admits the pod (workload type training), it is Waiting, not Infeasible"
    )


def test_other_pods_that_the_webhook_would_change_are_named_once(run: Run, tmp_path: Path) -> None:
    feasible = [make_pod(f"trainer-{number}").annotate(TYPE, "training") for number in range(4)]

    outcome = run(
        *("check", "-f", "-", "--cluster", write_cluster(tmp_path), "--as-written"),
        stdin=as_list(*feasible, FEASIBLE, MISTYPED),
    )

    named = "default/trainer-0, default/trainer-1, default/trainer-2 and 2 more"
    assert outcome.errors == (
        f"Hint: checked as written, but the webhook would change or refuse {named}: leave --as-written out\n"
    )


def test_a_pod_that_was_admitted_gets_no_hint(run: Run, tmp_path: Path) -> None:
    cluster = write_cluster(tmp_path)
    admitted = run("mutate", "-f", "-", "-o", "json", stdin=as_list(TRAINING)).output

    outcome = run("check", "-f", "-", "--cluster", cluster, "--as-written", stdin=admitted)

    assert (outcome.code, outcome.errors) == (0, "")


def test_a_mutated_pod_has_the_defaults_of_its_namespace(run: Run, tmp_path: Path) -> None:
    """The training pool, which the namespace of the file makes the pod's, is full; another node has free cards."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "annotations": {TYPE: "training"}}}
    cluster = write_cluster(tmp_path, namespace)

    outcome = run(
        "check",
        "-f",
        "-",
        "--cluster",
        cluster,
        "-o",
        "json",
        stdin=as_list(make_pod("a").namespace("ml").gpu(1)),
    )

    assert lines(outcome.output)[0]["verdict"] == "Waiting"


def test_a_pod_that_the_policy_denies_is_code_5_and_the_others_are_evaluated(run: Run, tmp_path: Path) -> None:
    pods = as_list(MISTYPED, INFEASIBLE, FEASIBLE)

    outcome = run("check", "-f", "-", "--cluster", write_cluster(tmp_path), "-o", "json", stdin=pods)

    assert outcome.code == 5
    refused, *others = lines(outcome.output)
    assert [each["pod"] for each in others] == ["default/infeasible", "default/feasible"]
    message = f'metadata.annotations[{TYPE}]: Unsupported value: "trainning"; supported values: "inference", "training"'
    nothing: dict[str, Any] = {
        "node": None,
        "nodes": {"total": 0, "feasible": 0, "reasons": {}},
        "scores": {},
        "suggestions": [],
        "unmodelled": [],
        "qosClass": None,
    }
    assert refused == {"pod": "default/oops", "verdict": "Refused", "message": message} | nothing
    assert f'default/oops: metadata.annotations[{TYPE}]: Unsupported value: "trainning"' in outcome.errors
    assert "<stdin>: items[0]" in outcome.errors


def test_a_cluster_can_be_read_from_standard_input(run: Run, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(to_yaml(FEASIBLE.obj()))

    outcome = run("check", "-f", pod, "--cluster", "-", "-o", "json", stdin=write_cluster(tmp_path).read_text())

    assert (outcome.code, lines(outcome.output)[0]["node"]) == (0, "free")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            ("-f", "-", "--cluster", "-"),
            "--filename and --cluster cannot both be standard input; put one of them into a file.",
            id="pods and cluster",
        ),
        pytest.param(
            ("-f", "pod.yaml", "--cluster", "-", "--scheduler-config", "-"),
            "--cluster and --scheduler-config cannot both be standard input; put one of them into a file.",
            id="cluster and configuration",
        ),
        pytest.param(
            ("-f", "-", "-f", "-", "--cluster", "cluster.yaml"),
            "--filename can be standard input once; leave the other out.",
            id="pods twice",
        ),
    ],
)
def test_standard_input_is_read_once(run: Run, files: tuple[str, ...], expected: str) -> None:
    outcome = run("check", *files)
    assert (outcome.code, outcome.output) == (2, "")
    assert expected in outcome.errors


@pytest.mark.parametrize(
    ("pod", "cluster", "expected"),
    [
        pytest.param("a: b: c", "", "Error: <pod>:1:5: Invalid value: ", id="a pod that is no YAML"),
        pytest.param("", "a: b: c", "Error: <cluster>:1:5: Invalid value: ", id="a cluster that is no YAML"),
        pytest.param("kind: Pod\n", "", "Error: <pod>: metadata: Required value", id="a pod without metadata"),
        pytest.param(
            "kind: Pod\nmetadata: {}\nspec: {tolerations: [{key: 1}]}\n",
            "",
            "Error: <pod>: spec.tolerations[0].key: Invalid value: 1; must be text",
            id="a pod with a wrong field",
        ),
        pytest.param(
            "kind: Pod\nmetadata: {}\nspec: {containers: [{resources: {requests: {cpu: lots}}}]}\n",
            "",
            "Error: <pod>: spec.containers[0].resources.requests[cpu]: Invalid value: ",
            id="a quantity that is none",
        ),
        pytest.param(
            "kind: Pod\nmetadata: {}\nspec: {}\n",
            "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {a: 1}}\n",
            "Error: <cluster>: Node n1: metadata.labels[a]: Invalid value: 1",
            id="a node with a wrong field",
        ),
    ],
)
def test_bad_input_is_code_2_and_names_file_and_field(
    run: Run, tmp_path: Path, pod: str, cluster: str, expected: str
) -> None:
    paths = {"<pod>": tmp_path / "pod.yaml", "<cluster>": tmp_path / "cluster.yaml"}
    paths["<pod>"].write_text(pod)
    paths["<cluster>"].write_text(cluster or as_list(*NODES))

    outcome = run("check", "-f", paths["<pod>"], "--cluster", paths["<cluster>"])

    for placeholder, path in paths.items():
        expected = expected.replace(placeholder, str(path))
    assert (outcome.code, "Feasible" in outcome.output) == (2, False)
    assert outcome.errors.startswith(expected)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        pytest.param("\n", "holds no Node;", id="an empty file, the output of a failed command"),
        pytest.param('{"apiVersion": "v1", "kind": "List", "items": []}', "holds no Node;", id="an empty list"),
        pytest.param(
            '{"apiVersion": "v1", "kind": "NodeList", "items": []}', "holds no Node,", id="a list of no nodes"
        ),
        pytest.param("{}", "holds no Node;", id="no object"),
        pytest.param('{"serverVersion": {"gitVersion": "v1.37.2"}}', "holds no Node;", id="the version alone"),
        pytest.param(as_list(LOAD, FEASIBLE), "holds no Node, only Pod;", id="pods alone"),
    ],
)
@pytest.mark.parametrize("command", ["check", "mutate"])
def test_a_cluster_file_without_nodes_is_an_error_with_its_remedy(
    run: Run, tmp_path: Path, command: str, text: str, held: str
) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(text)

    outcome = run(command, "-f", "-", "--cluster", cluster, stdin=as_list(FEASIBLE))

    assert (outcome.code, outcome.output) == (2, "")
    assert f'Error: --cluster: Invalid value: "{cluster}"; {held}' in outcome.errors
    assert outcome.errors.endswith("give what `kubectl get nodes,pods,namespaces -A -o json` prints\n")


INVALID = {
    "a part of a card": (
        make_pod("half").limits(**{"nvidia.com/gpu": "0.5"}),
        'spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
    ),
    "cards without a limit": (
        make_pod("unlimited").requests(**{"nvidia.com/gpu": "2"}),
        "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
    ),
    "a bad name": (make_pod("Trainer"), 'metadata.name: Invalid value: "Trainer": a lowercase RFC 1123 subdomain must'),
    "a negative amount": (
        make_pod("less").limits(cpu="-0.5"),
        'spec.containers[0].resources.limits[cpu]: Invalid value: "-500m": must be greater than or equal to 0',
    ),
    "a malformed field": (
        make_pod("odd").spec(tolerations=[{"key": 1}]),
        "spec.tolerations[0].key: Invalid value: 1; must be text",
    ),
    "a container that is a text": (
        make_pod("bare").spec(containers=["main"]),
        'spec.containers[0]: Invalid value: "main"; must be an object',
    ),
    "containers that are no list": (
        make_pod("counted").spec(containers=5),
        "spec.containers: Invalid value: 5; must be a list",
    ),
    "no container": (make_pod("empty").spec(containers=[]), "spec.containers: Required value"),
    "a container without an image": (
        make_pod("bare").spec(containers=[{"name": "main"}]),
        "spec.containers[0].image: Required value",
    ),
    "limits that are a list": (
        make_pod("listed").spec(containers=[{"name": "main", "resources": {"limits": ["cpu"]}}]),
        'spec.containers[0].resources.limits: Invalid value: ["cpu"]; must be an object',
    ),
}


@pytest.mark.parametrize(("pod", "words"), INVALID.values(), ids=INVALID)
@pytest.mark.parametrize("options", [(), ("--as-written",)])
def test_a_pod_that_the_api_server_rejects_is_invalid_and_the_others_are_evaluated(
    run: Run, tmp_path: Path, pod: PodBuilder, words: str, options: tuple[str, ...]
) -> None:
    arguments = ("check", "-f", "-", "--cluster", write_cluster(tmp_path), *options)
    pods = as_list(pod.annotate(TYPE, "training"), INFEASIBLE)

    text, json = run(*arguments, stdin=pods), run(*arguments, "-o", "json", stdin=pods)

    invalid, infeasible = lines(json.output)
    assert (text.code, json.code) == (2, 2)
    assert (invalid["verdict"], infeasible["verdict"]) == ("Invalid", "Infeasible")
    assert invalid["message"].startswith(words)
    assert any(line.startswith(f"Error: <stdin>: items[0]: {words}") for line in text.errors.splitlines())
    assert text.output.splitlines()[-1] == "2 pods: 1 Infeasible, 1 Invalid"


def test_capacity_counts_no_pod_that_the_api_server_rejects(run: Run, tmp_path: Path) -> None:
    pod, words = INVALID["a part of a card"]

    outcome = run("capacity", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(pod))

    assert (outcome.code, outcome.output.splitlines()[0]) == (2, "default/half: not known how many more fit")
    assert words in outcome.errors


def test_an_invalid_pod_decides_on_the_code_beside_a_denied_one(run: Run, tmp_path: Path) -> None:
    invalid = make_pod("broken").requests(cpu="much")

    outcome = run("check", "-f", "-", "--cluster", write_cluster(tmp_path), stdin=as_list(MISTYPED, invalid))

    assert outcome.code == 2
    assert outcome.output.endswith("2 pods: 1 Refused, 1 Invalid\n")
