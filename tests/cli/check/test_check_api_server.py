"""`check` and `capacity` evaluate manifests and templates as the API server completes their pods."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.admission import TYPE
from tests.support.objects.api_server import Object, limit_range, namespace, runtime_class
from tests.support.objects.builders import PodBuilder, make_node_object, make_pod
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Outcome, Run

NODES = [make_node_object(name, labels={"rack": "r0"}, capacity={"cpu": "4"}) for name in ("a", "b")]
GVISOR = runtime_class("gvisor", scheduling={"nodeSelector": {"rack": "r1"}})
KATA = runtime_class("kata", overhead={"podFixed": {"cpu": "1500m"}})
DEFAULTS = limit_range({"type": "Container", "default": {"cpu": "3"}})
NO_HELP = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
NO_NODE = f"0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. {NO_HELP}"
NO_CPU = f"0/2 nodes are available: 2 Insufficient cpu. {NO_HELP}"


def pod(runtime: str = "", *cpu: str) -> PodBuilder:
    containers: list[Object] = [{"name": f"c{index}", "image": "i"} for index in range(2)]
    for container, amount in zip(containers, cpu, strict=False):
        container["resources"] = {"requests": {"cpu": amount}}
    builder = make_pod("p").label("app", "web").spec(containers=containers)
    return builder.spec(runtimeClassName=runtime) if runtime else builder


def deployment(of: PodBuilder) -> Object:
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": of.template()}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "p"}, "spec": spec}


@pytest.fixture
def asked(run: Run, tmp_path: Path) -> Any:
    def asked(command: str, manifest: Any, *cluster: Object, options: Any = ("-o", "json")) -> Outcome:
        path = tmp_path / "cluster.json"
        path.write_text(as_list(*NODES, *cluster))
        manifests = manifest if isinstance(manifest, list) else [manifest]
        return run(command, "-f", "-", "--cluster", path, *options, stdin=as_list(*manifests))

    return asked


@pytest.mark.parametrize("mode", ["--mutate", "--as-written"])
@pytest.mark.parametrize("is_template", [False, True])
@pytest.mark.parametrize(
    ("manifest", "added", "message"),
    [
        (pod("gvisor", "1"), GVISOR, NO_NODE),
        (pod("kata", "3"), KATA, NO_CPU),
        (pod(), DEFAULTS, NO_CPU),
    ],
)
def test_pods_are_placed_with_what_the_api_server_adds(
    asked: Any, manifest: PodBuilder, added: Object, message: str, is_template: bool, mode: str
) -> None:
    written = deployment(manifest) if is_template else manifest
    (line,) = lines(asked("check", written, added, options=("-o", "json", mode)).output)
    assert (line["verdict"], line["message"]) == ("Infeasible", message)

    # The objects among the files count as those of the cluster.
    planned = asked("check", [added, written], options=("-o", "json", mode))
    assert lines(planned.output) == [line]
    (counted,) = lines(asked("capacity", written, added).output)
    assert counted["fits"] == 0


def test_check_names_what_adds_to_the_pod(asked: Any) -> None:
    text = asked("check", pod("kata", "1"), KATA, DEFAULTS, options=()).output

    assert "\n  the API server adds to it by LimitRange limits, RuntimeClass kata\n" in text
    (line,) = lines(asked("check", pod("kata", "1"), KATA, DEFAULTS).output)
    assert line["added"] == ["LimitRange limits", "RuntimeClass kata"]


def test_a_suggestion_names_the_class_that_selects_nodes(asked: Any) -> None:
    manifest = pod("gvisor").node_selector("pool", "x")
    of_class, own = (
        lines(asked("check", each, GVISOR).output)[0]["suggestions"]
        for each in (pod("gvisor"), pod().node_selector("rack", "r1"))
    )

    assert of_class == ["2 nodes would fit without the nodeSelector rack=r1 of RuntimeClass gvisor (they have r0)"]
    assert own == ["2 nodes would fit without the nodeSelector rack=r1 (they have r0)"]
    (both,) = lines(asked("check", manifest, GVISOR).output)[0]["suggestions"]
    assert "without the nodeSelector pool=x (they have none) and the nodeSelector rack=r1 of RuntimeClass" in both


@pytest.mark.parametrize("is_template", [False, True])
def test_class_that_is_not_known_makes_the_verdict_unknown(asked: Any, is_template: bool) -> None:
    written = deployment(pod("kata")) if is_template else pod("kata")
    outcome = asked("check", written)

    (line,) = lines(outcome.output)
    message = (
        "the RuntimeClass kata is not known: add runtimeclasses to the cluster file, or grant list and watch of them"
    )
    assert (outcome.code, line["verdict"], line["message"]) == (3, "Unknown", message)
    (counted,) = lines(asked("capacity", written).output)
    assert counted["endedEarly"] == message


@pytest.mark.parametrize(
    ("manifest", "cluster", "words"),
    [
        (pod("gone"), KATA, 'pod rejected: RuntimeClass "gone" not found'),
        (
            pod("", "5", "1"),
            limit_range({"type": "Pod", "max": {"cpu": "4"}}),
            "maximum cpu usage per Pod is 4.  No limit is specified",
        ),
    ],
)
def test_refusals_of_the_api_server_are_invalid_in_its_words(
    asked: Any, manifest: PodBuilder, cluster: Object, words: str
) -> None:
    outcome = asked("check", manifest, cluster)

    (line,) = lines(outcome.output)
    message = f'pods "p" is forbidden: {words}'
    assert (outcome.code, line["verdict"], line["message"]) == (2, "Invalid", message)
    assert f"Error: <stdin>: items[0]: {message}\n" in outcome.errors
    assert f"Error: <stdin>: items[0]: {message}\n" in asked("capacity", manifest, cluster).errors


@pytest.mark.parametrize("is_template", [False, True])
def test_class_of_the_workload_type_that_does_not_exist_is_refused(
    asked: Any, tmp_path: Path, is_template: bool
) -> None:
    policy = tmp_path / "policy.yaml"
    usage = {"nodeUsage": {"allow": ["training"]}, "priorityClassName": "gone"}
    head = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy", "metadata": {"name": "p"}}
    policy.write_text(json.dumps({**head, "spec": {"workloadTypes": {"training": usage}}}))
    manifest = make_pod("asked").label("app", "web").annotate(TYPE, "training").gpu(1)
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}

    outcome = asked(
        "check", deployment(manifest) if is_template else manifest, high, options=("-o", "json", "--policy", policy)
    )

    (line,) = lines(outcome.output)
    assert (outcome.code, line["verdict"]) == (2, "Invalid")
    assert "no PriorityClass with name gone was found" in line["message"]


def test_default_limit_below_a_request_is_invalid(asked: Any) -> None:
    words = 'resources.requests: Invalid value: "5": must be less than or equal to cpu limit of 3'

    assert f"spec.containers[0].{words}" in asked("check", pod("", "5"), DEFAULTS).errors


CARD = "example.com/card"
CARDS = make_node_object("cards", taints=[f"{CARD}=yes:NoSchedule"], capacity={"cpu": "4", CARD: 2})
CARD_CONTAINER = {"name": "c", "image": "i", "resources": {"limits": {CARD: 1}}}
CARD_POD = make_pod("p").label("app", "web").spec(containers=[CARD_CONTAINER])
SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
READ = f"PodNodeSelector (annotation {SELECTOR} of the namespace default)"


@pytest.mark.parametrize("is_template", [False, True])
@pytest.mark.parametrize(
    ("manifest", "cluster", "message", "counts"),
    [
        (
            pod("", "1"),
            (namespace("default", **{SELECTOR: "rack=r1"}),),
            f"Feasible as written, Infeasible if the API server runs {READ}",
            f"8 fit as written, 0 fit if the API server runs {READ}",
        ),
        (
            pod("", "1"),
            (namespace("default", **{SELECTOR: "rack"}),),
            f"Feasible as written, Invalid if the API server runs {READ}",
            f"8 fit as written, 0 fit if the API server runs {READ}",
        ),
        (
            CARD_POD,
            (CARDS,),
            (
                "Infeasible as written, Feasible if the API server runs ExtendedResourceToleration: "
                "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient example.com/card. "
                "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
            ),
            "0 fit as written, 2 fit if the API server runs ExtendedResourceToleration",
        ),
    ],
)
def test_plugin_that_may_run_makes_the_verdict_unknown_if_it_decides(
    asked: Any, manifest: PodBuilder, cluster: tuple[Object, ...], message: str, counts: str, is_template: bool
) -> None:
    written = deployment(manifest) if is_template else manifest
    (line,) = lines(asked("check", written, *cluster).output)
    assert (line["verdict"], line["message"]) == ("Unknown", message)
    (counted,) = lines(asked("capacity", written, *cluster).output)
    assert counted["endedEarly"] == counts


@pytest.mark.parametrize(
    ("manifest", "selector", "verdict", "fits"),
    [(pod("", "1"), "rack=r0", "Feasible", 8), (pod("", "5"), "rack=r1", "Infeasible", 0)],
)
def test_plugin_that_may_run_and_decides_nothing_is_not_named(
    asked: Any, manifest: PodBuilder, selector: str, verdict: str, fits: int
) -> None:
    known = namespace("default", **{SELECTOR: selector})
    (line,) = lines(asked("check", manifest, known).output)
    assert (line["verdict"], "API server" in line["message"]) == (verdict, False)
    (counted,) = lines(asked("capacity", manifest, known).output)
    assert counted["fits"] == fits
