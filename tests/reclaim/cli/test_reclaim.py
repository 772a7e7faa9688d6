"""`reclaim`: the report on a cluster file."""

from pathlib import Path

import orjson
import pytest

from tests.support.objects.builders import make_pod
from tests.support.objects.held import GANG, GANG_SIZE, HOUR, ago, card_pod, gang_pod, gpu_node, waiting
from tests.support.programs.cluster_files import as_list
from tests.support.programs.command import Run

NODES = [*(gpu_node(f"n{number}") for number in range(1, 5)), gpu_node("n7", down_for=2 * HOUR)]
PULLING = waiting(
    card_pod("srv-5d9-x", "n1").label("pod-template-hash", "5d9").owner("ReplicaSet", "srv-5d9"),
    "ImagePullBackOff",
    6 * HOUR,
    message="Back-off pulling image: not found",
)
GANG_PODS = [gang_pod(number, f"n{number + 2}" if number < 3 else "", since=41 * 60) for number in range(8)]
LLM = [
    make_pod(f"llm-{n}").namespace("team-e").gpu(8).annotate(GANG, "llm").annotate(GANG_SIZE, "4").creation(ago(60))
    for n in range(4)
]
LOST = card_pod("train-7", "n7").owner("StatefulSet", "train").deletion(ago(HOUR))


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.json"
    file.write_text(as_list(*NODES, PULLING, *GANG_PODS, *LLM, LOST))
    return file


def test_reclaim_prints_usable_nodes_then_nodes_that_are_down_and_what_starts(run: Run, cluster: Path) -> None:
    outcome = run("reclaim", "--cluster", cluster)

    lines = outcome.output.splitlines()
    assert outcome.code == 3
    assert lines[0] == "held on usable nodes: 32 of 32 cards, 4 holders"
    assert lines[1].split() == ["CARDS", "NODE", "HELD", "BY", "SINCE", "WHY", "FREES", "IT"]
    assert lines[2].split()[:6] == ["24", "n2,", "n3,", "n4", "team-c/bert", "41m"]
    assert "at least 6h  ImagePullBackOff: Back-off pulling image: not found  scale Deployment srv to 0 (2)" in lines[3]
    assert lines[4] == "held on nodes that are down: 8 cards, 1 holder; no other pod can use them"
    assert "Terminating past its end; node n7 is down" in lines[6]
    assert lines[7] == "commands for a person who has checked the condition:"
    assert "  (3) if n7 is off: pods of a running node go on with its volumes:" in lines
    assert lines[-2] == "without them 1 of 2 waiting gangs starts: team-e/llm"
    assert lines[-1] == "5 pods of them return at once: a controller makes them again"


@pytest.mark.parametrize(("number", "text"), [(1, "0 of 1 waiting pod starts"), (2, "0 of 2 waiting pods start")])
def test_reclaim_counts_the_pods_that_do_not_start(run: Run, tmp_path: Path, number: int, text: str) -> None:
    pods = [make_pod(f"w-{index}").namespace("team-a").gpu(64) for index in range(number)]
    (file := tmp_path / "cluster.json").write_text(as_list(*NODES, LOST, *pods))

    assert f"without them {text}" in run("reclaim", "--cluster", file).output.splitlines()


def test_reclaim_has_the_same_as_json(run: Run, cluster: Path) -> None:
    found = orjson.loads(run("reclaim", "--cluster", cluster, "-o", "json").output)

    assert (found["usableCards"], found["starts"], found["complete"]) == (32, ["team-e/llm"], True)
    assert found["waiting"] == {"gangs": ["team-c/bert", "team-e/llm"], "pods": []}
    gang, pulling, lost = found["held"]
    assert (gang["class"], gang["pods"], gang["since"], gang["seconds"]) == (
        "partial-gang",
        ["bert-0", "bert-1", "bert-2"],
        "2026-03-01T11:19:00Z",
        2460,
    )
    assert (pulling["resources"], pulling["atLeast"], pulling["nodeDown"]) == ({"nvidia.com/gpu": 8}, True, False)
    assert pulling["commands"] == [
        {
            "command": "kubectl scale deployment srv -n team-a --replicas=0",
            "onlyIf": "the owner of Deployment srv agrees",
        }
    ]
    assert (lost["nodeDown"], lost["returns"]) == (True, True)
    assert (gang["why"], gang["cards"], gang["nodes"]) == (
        "3 of 8 pods of gang bert run, 5 wait",
        24,
        ["n2", "n3", "n4"],
    )
    assert [each["why"] for each in (pulling, lost)] == [
        "ImagePullBackOff: Back-off pulling image: not found",
        "Terminating past its end; node n7 is down",
    ]


def test_only_kinds_of_nodes_with_held_cards_have_a_table(run: Run, cluster: Path) -> None:
    here, down = (run("reclaim", "--cluster", cluster, "--node", node).output for node in ("n2", "n7"))

    assert ("held on usable nodes" in here, "nodes that are down" in here) == (True, False)
    assert ("held on usable nodes" in down, "nodes that are down" in down) == (False, True)


@pytest.mark.parametrize(
    ("waiting_cards", "line"),
    [
        ((), "no gang and no pod waits for cards"),
        ((9,), "without them 0 of 1 waiting pod starts"),
        ((8,), "without them 1 of 1 waiting pod starts: default/p0"),
        ((4, 4), "without them 2 of 2 waiting pods start: default/p0, default/p1"),
    ],
)
def test_the_number_of_pods_that_start_is_in_the_report(
    run: Run, tmp_path: Path, waiting_cards: tuple[int, ...], line: str
) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pods = [
        make_pod(f"p{n}").gpu(cards).creation(ago(HOUR)).status(phase="Pending", conditions=[condition])
        for n, cards in enumerate(waiting_cards)
    ]
    file = tmp_path / "cluster.json"
    file.write_text(as_list(NODES[0], PULLING, *pods))

    assert line in run("reclaim", "--cluster", file).output.splitlines()


def test_the_report_says_that_not_all_waiting_pods_are_placed(
    run: Run, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement_reclaim.effects.MOST_PENDING", 1)

    lines = run("reclaim", "--cluster", cluster).output.splitlines()
    found = orjson.loads(run("reclaim", "--cluster", cluster, "-o", "json").output)

    assert lines[-2] == "too many pods wait: only the first of the queue are placed"
    assert found["complete"] is False


def test_cards_that_are_held_since_a_moment_are_older_than_0(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(as_list(NODES[0], card_pod("just-over", "n1").deletion(ago(61))))

    assert run("reclaim", "--cluster", file).code == 0
    assert run("reclaim", "--cluster", file, "--older-than", "0").code == 3


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--node", "n7"), ["train-7"]),
        (("--node", "n7,n2"), ["bert", "train-7"]),
        (("--class", "partial-gang,terminating", "--class", "image-pull"), ["bert", "srv-5d9-x", "train-7"]),
        (("--class", "image-pull"), ["srv-5d9-x"]),
        (("--older-than", "2h"), ["srv-5d9-x"]),
        (("-n", "team-c"), ["bert"]),
    ],
)
def test_rows_are_selected_by_node_class_age_and_namespace(
    run: Run, cluster: Path, flags: tuple[str, ...], expected: list[str]
) -> None:
    held = orjson.loads(run("reclaim", "--cluster", cluster, *flags, "-o", "json").output)["held"]

    assert [each["name"] for each in held] == expected


def test_reclaim_exits_with_0_if_nothing_is_held(run: Run, cluster: Path) -> None:
    outcome = run("reclaim", "--cluster", cluster, "--class", "crash-loop,config-error")

    assert (outcome.code, outcome.output) == (0, "no cards are held and not used\n")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--class", ""), "'' must be one of terminating, node-down, "),
        (("--class", "imagepull"), "idle, or several with commas. Did you mean 'image-pull'?"),
        (("--older-than", "1 day"), '"1 day" must be a duration such as 90s, 30m or 24h'),
        (("--older-than", "-5m"), '"-5m" must be a duration such as 90s, 30m or 24h'),
        (("--node", "n8"), '--node: Invalid value: "n8"; the cluster has no such node; the nearest names: n7'),
        (("-n", "Team A"), '--namespace: Invalid value: "Team A"'),
        (("--max", "0"), "0 is not in the range x>=1"),
    ],
)
def test_reclaim_names_what_would_be_valid(run: Run, cluster: Path, flags: tuple[str, str], message: str) -> None:
    outcome = run("reclaim", "--cluster", cluster, *flags)

    assert outcome.code == 2
    assert message in outcome.errors


def test_help_says_that_a_namespace_selects_rows(run: Run) -> None:
    assert "Only cards of this namespace. Default: all." in " ".join(run("reclaim", "--help").output.split())


NEEDS_EVICT = "--confirm, --audit, --max, --max-per-owner and --pause need --evict."


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--evict",), "--evict asks a live cluster: leave --cluster out."),
        (("--confirm",), NEEDS_EVICT),
        (("--audit", "audit.jsonl"), NEEDS_EVICT),
        (("--max", "5"), NEEDS_EVICT),
        (("--pause", "1s"), NEEDS_EVICT),
    ],
)
def test_flags_that_cannot_be_given_together_are_refused(
    run: Run, cluster: Path, flags: tuple[str, ...], message: str
) -> None:
    outcome = run("reclaim", "--cluster", cluster, *flags)

    assert outcome.code == 2
    assert message in outcome.errors


def test_an_eviction_needs_a_place_for_its_record(run: Run) -> None:
    outcome = run("reclaim", "--evict", "--confirm")

    assert outcome.code == 2
    assert "--confirm needs --audit FILE, where each eviction is on record." in outcome.errors


def test_an_empty_url_of_prometheus_is_an_error(run: Run, cluster: Path) -> None:
    outcome = run("reclaim", "--cluster", cluster, "--prometheus", "")

    assert (outcome.code, outcome.output) == (2, "")
    assert '--prometheus: Invalid value: "(not shown)"; must be http://HOST or https://HOST' in outcome.errors


def test_a_kubeconfig_that_cannot_be_read_is_one_error(run: Run, tmp_path: Path) -> None:
    outcome = run("reclaim", "--kubeconfig", tmp_path / "missing")

    assert (outcome.code, outcome.errors.count("\n")) == (2, 1)
    assert outcome.errors.startswith("Error: --kubeconfig: ")


def test_a_namespace_that_the_cluster_does_not_have_is_a_warning(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
    file.write_text(as_list(*NODES, namespace))

    assert run("reclaim", "--cluster", file, "-n", "team-a").errors == ""
    assert run("reclaim", "--cluster", file, "-n", "teama").errors == (
        "Warning: --namespace: the cluster has no namespace teama\n"
    )


@pytest.mark.parametrize("flags", [(), ("-o", "json")])
def test_a_time_before_all_years_is_none(run: Run, tmp_path: Path, flags: tuple[str, ...]) -> None:
    results = [{"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0", "request": "gpu"}]
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "cards", "namespace": "team-a", "creationTimestamp": "0001-01-01T00:00:00+23:00"},
        "spec": {"devices": {}},
        "status": {"allocation": {"devices": {"results": results}}},
    }
    file = tmp_path / "cluster.json"
    file.write_text(as_list(NODES[0], claim))

    assert run("reclaim", "--cluster", file, *flags).code == 3
