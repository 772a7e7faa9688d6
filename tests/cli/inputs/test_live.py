"""Commands on the answers of a fake API server; tests/cli/test_live_cluster.py has a real one."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fake_cluster import REQUIRED, listing
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.moves import budget, running
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import FakeConfigurationApi
from webhook.cli.inputs import live
from webhook.cluster.cache.resources import RESOURCES, Resource
from webhook.watch.api_server import ClientConfig

WORKLOADS = ("deployments", "statefulsets")
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"


def test_check_reads_the_cluster_and_names_the_kinds_that_are_not_served(run: Run, kubeconfig: Path) -> None:
    outcome = run("check", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", stdin=as_list(make_pod("p").gpu(8)))

    (answer,) = lines(outcome.output)
    assert (outcome.code, answer["verdict"]) == (0, "Feasible")
    assert answer["nodes"] == {"total": 2, "feasible": 2, "reasons": {}}
    said = outcome.errors.splitlines()
    assert "not known: services: GET /api/v1/services: 404 there is none" in said
    reported = {line.split(": ")[1] for line in said}
    optional = [each for each in RESOURCES if not each.is_required]
    others = {"the policy in force", "signs of schedulers"}
    assert reported == {each.plural for each in optional if not each.is_extension} | others
    assert [line for line in said if not line.startswith("not known: ")] == []


def test_check_names_the_right_that_is_missing_where_only_kinds_are(run: Run, kubeconfig: Path) -> None:
    pod = make_pod("p").spec(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}])
    outcome = run("check", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", stdin=as_list(pod))

    (answer,) = lines(outcome.output)
    kinds = "persistentvolumeclaims, persistentvolumes, storageclasses"
    assert answer["verdict"] == "Unknown"
    assert answer["message"].endswith(f", which is not modelled: grant list and watch of {kinds}.")


def test_check_names_objects_that_cannot_be_read(run: Run, api: FakeConfigurationApi, kubeconfig: Path) -> None:
    api.objects[REQUIRED["Node"]]["items"].append(make_node_object("bad", capacity={"cpu": "many"}))

    outcome = run("check", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", stdin=as_list(make_pod("p")))

    assert lines(outcome.output)[0]["nodes"]["total"] == 2
    (said,) = [line for line in outcome.errors.splitlines() if not line.startswith("not known: ")]
    assert said.startswith('left out: Node bad: status.allocatable[cpu]: Invalid value: "many"')


@pytest.mark.parametrize("kind", REQUIRED)
def test_a_cluster_without_a_required_kind_is_an_error(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path, kind: str
) -> None:
    del api.objects[REQUIRED[kind]]

    outcome = run("check", "-f", "-", "--kubeconfig", kubeconfig, stdin=as_list(make_pod("p")))

    assert (outcome.code, outcome.output) == (1, "")
    assert outcome.errors.endswith(f"Error: GET {REQUIRED[kind]}: 404 there is none\n")


def test_any_other_error_than_a_forbidden_kind_ends_the_command(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    api.refuses = 500

    outcome = run("check", "-f", "-", "--kubeconfig", kubeconfig, stdin=as_list(make_pod("p")))

    assert (outcome.code, outcome.errors) == (1, "Error: GET /api/v1/namespaces: 500 because Refused\n")


def test_an_expired_token_ends_the_command_also_for_a_kind_that_may_be_forbidden(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    api.refused = {"/api/v1/services": 401}

    outcome = run("check", "-f", "-", "--kubeconfig", kubeconfig, stdin=as_list(make_pod("p")))

    assert (outcome.code, outcome.output) == (1, "")
    assert outcome.errors.endswith("Error: GET /api/v1/services: 401 because Refused\n")


def test_a_kind_that_is_served_and_empty_is_known_to_be_empty(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    signs_of_schedulers = {"/apis": {"groups": []}, "/apis/coordination.k8s.io/v1/leases": listing()}
    api.objects = {resource.path: listing() for resource in RESOURCES} | signs_of_schedulers | api.objects
    configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    servers = (f"/apis/apps/v1/namespaces/placement-webhook/{kind}" for kind in WORKLOADS)
    api.objects |= {path: listing() for path in (configurations, *servers)}
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    pod = make_pod("p").spec(volumes=[volume])

    outcome = run("check", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", stdin=as_list(pod))

    (answer,) = lines(outcome.output)
    assert (answer["message"], answer["unmodelled"], outcome.errors) == (
        (
            '0/2 nodes are available: persistentvolumeclaim "c" not found. '
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        ),
        [],
        "",
    )


@pytest.mark.parametrize("command", [("check", "-f", "-"), ("snapshot",), ("missed",)])
def test_without_a_file_the_cluster_is_that_of_kubectl(
    run: Run,
    api: FakeConfigurationApi,
    kubeconfig: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    """$KUBECONFIG is a list of files, and --context selects from all of them."""
    other = tmp_path / "other"
    contexts = [{"name": "there", "context": {"cluster": "c", "user": "u"}}]
    other.write_text(json.dumps({"contexts": contexts, "current-context": "gone"}))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(other), str(kubeconfig), str(tmp_path / "absent")]))
    pods = as_list(make_pod("p").gpu(8))

    at_the_current_context = run(*command, stdin=pods)
    there = run(*command, "--context", "there", stdin=pods)

    assert at_the_current_context.code == 2
    assert 'Error: $KUBECONFIG: current-context: Unsupported value: "gone"; ' in at_the_current_context.errors
    assert "Error: " not in there.errors
    assert there.output


@pytest.mark.parametrize("command", [("check", "-f", "-"), ("snapshot",), ("mutate", "-f", "-")])
def test_a_cluster_that_no_flag_names_is_named_on_standard_error(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    pods = as_list(make_pod("p").gpu(8))

    outcome = run(*command, "--context", "c", stdin=pods)

    assert outcome.code == 0
    assert outcome.errors.splitlines()[0] == f"cluster: context c, {api.url}"


def test_mutate_reads_a_cluster_only_if_a_flag_names_one(
    run: Run, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig.with_name("absent")))

    outcome = run("mutate", "-f", "-", stdin=as_list(make_pod("p").gpu(8)))

    assert (outcome.code, outcome.errors) == (0, "default/p: left alone: no workload type\n")


@pytest.mark.parametrize(
    ("served", "known"),
    [
        pytest.param({}, False, id="not served or forbidden"),
        pytest.param({BUDGETS: listing()}, True, id="none"),
        pytest.param({BUDGETS: listing(budget("web", 0))}, True, id="one"),
    ],
)
def test_a_drain_reads_the_pods_and_their_budgets(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path, served: dict[str, Any], known: bool
) -> None:
    api.objects[REQUIRED["Pod"]] = listing(running("p", "a", 8).obj())
    api.objects |= served

    outcome = run("capacity", "--drain", "a", "--kubeconfig", kubeconfig, "-o", "json")

    (found,) = lines(outcome.output)
    assert (outcome.code, found["fits"], found["of"], found["budgetsKnown"]) == (0, 1, 1, known)
    has_budget = bool(served) and bool(served[BUDGETS]["items"])
    assert (found["pods"][0]["evictionRefused"] is not None) is has_budget
    is_reported = any("not known: poddisruptionbudgets: " in line for line in outcome.errors.splitlines())
    assert is_reported is not known


def test_a_list_that_begins_anew_replaces_the_pages_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server ends a list of several pages if its continue token is too old."""
    pods = [make_pod(name).obj() for name in ("a", "b")]

    def pages(_: object, resources: Iterable[Resource], on_page: live.OnPage) -> list[Resource]:
        for resource in resources:
            on_page(resource, [], True)
            if resource.kind == "Pod":
                on_page(resource, pods[:1], False)
                on_page(resource, pods[:1], True)
                on_page(resource, pods[1:], False)
        return []

    monkeypatch.setattr(live, "list_resources", pages)

    assert [each.content for each in live.read_live_workloads(ClientConfig())] == pods
