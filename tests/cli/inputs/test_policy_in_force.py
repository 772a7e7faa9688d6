"""Commands on a live cluster use the policy in force there, and name it."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pytest

from certs.webhook_rules import PODS
from tests.support.admission import TYPE
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.objects.policy_objects import policy
from tests.support.programs.cluster_files import as_list, lines
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api
from webhook.cli.inputs import policy_in_force, session
from webhook.policy.loader import built_in_policy, parse_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import policy_text
from webhook.watch.api_server import ClientConfig

OWN = "placement-webhook"
SERVERS = {
    "metadata": {"name": OWN, "namespace": OWN},
    "spec": {
        "template": {
            "metadata": {"labels": {"app": OWN}},
            "spec": {
                "containers": [
                    {
                        "args": ["serve", "--policy=/etc/policy/policy.yaml"],
                        "volumeMounts": [{"name": "policy", "mountPath": "/etc/policy"}],
                    }
                ],
                "volumes": [{"name": "policy", "configMap": {"name": "own-policy"}}],
            },
        }
    },
}
SERVICE = {"metadata": {"name": OWN}, "spec": {"selector": {"app": OWN}}}
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
CONFIG_MAP = f"/api/v1/namespaces/{OWN}/configmaps/own-policy"
WORKLOADS = f"/apis/apps/v1/namespaces/{OWN}"
DEPLOYMENTS = f"{WORKLOADS}/deployments"
OBJECTS = "/apis/placement.maip.mxsf.io/v1alpha1/placementpolicies"
TRAINER = make_pod("trainer").namespace("team-a").annotate(TYPE, "training").gpu(1)


def listing(*items: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": list(items)}


def scheduling(name: str, scheduler: str, team: str = "") -> dict[str, Any]:
    """Return a policy whose training pods have `scheduler`."""
    types = {"training": {"nodeUsage": {"allow": ["training"]}, "schedulerName": scheduler}}
    return policy(name, team, allowedSchedulers=[scheduler], workloadTypes=types)


def accepted(content: dict[str, Any]) -> dict[str, Any]:
    """Return a PlacementPolicy object that a server has accepted."""
    stored = deepcopy(content)
    stored["metadata"]["generation"] = 1
    stored["status"] = {"conditions": [{"type": "Accepted", "status": "True", "observedGeneration": 1}]}
    return stored


@pytest.fixture
def api() -> Iterator[FakeConfigurationApi]:
    """Return an API server with a training node and an installation whose ConfigMap has a policy."""
    usage = {"maip.mxsf.io/node.usage": "training"}
    with fake_api() as api:
        api.objects = {
            "/api/v1/namespaces": listing({"metadata": {"name": "team-a", "labels": {"team": "a"}}}),
            "/api/v1/nodes": listing(make_node_object("t", labels=usage, capacity={"nvidia.com/gpu": 8})),
            "/api/v1/pods": listing(),
            "/version": {"major": "1", "minor": "37", "gitVersion": "v1.37.2"},
            CONFIGURATIONS: listing(),
            f"{WORKLOADS}/statefulsets": listing(),
            DEPLOYMENTS: listing(deepcopy(SERVERS)),
            f"/api/v1/namespaces/{OWN}/services/{OWN}": SERVICE,
            CONFIG_MAP: {"data": {"policy.yaml": orjson.dumps(scheduling("own", "own-scheduler")).decode()}},
        }
        yield api


@pytest.fixture
def kubeconfig(api: FakeConfigurationApi, tmp_path: Path) -> Path:
    return api.kubeconfig(tmp_path)


def identity(content: dict[str, Any]) -> str:
    return parse_policy(policy_text(content), "policy").identity


def test_mutate_uses_the_config_map_of_the_installation(run: Run, kubeconfig: Path) -> None:
    outcome = run("mutate", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", stdin=as_list(TRAINER))

    assert lines(outcome.output)[0]["spec"]["schedulerName"] == "own-scheduler"
    named = f"team-a/trainer: policy {identity(scheduling('own', 'own-scheduler'))} (ConfigMap own-policy, in force)"
    assert named in outcome.errors.splitlines()


def test_as_a_plugin_of_kubectl_mutate_reads_the_cluster_of_kubectl(
    run: Run, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    arguments = ("mutate", "-f", "-", "-o", "json")

    alone = run(*arguments, stdin=as_list(TRAINER))
    monkeypatch.setattr(session, "is_kubectl_plugin", lambda: True)
    by_kubectl = run(*arguments, stdin=as_list(TRAINER))

    schedulers = [lines(each.output)[0]["spec"]["schedulerName"] for each in (alone, by_kubectl)]
    assert schedulers == ["volcano", "own-scheduler"]


@pytest.mark.parametrize("command", ["check", "capacity"])
def test_the_output_names_the_policy_and_where_it_is_in_force(run: Run, kubeconfig: Path, command: str) -> None:
    arguments = (command, "-f", "-", "--kubeconfig", kubeconfig)
    name, _, revision = identity(scheduling("own", "own-scheduler")).partition("@")

    text, json = (run(*arguments, *output, stdin=as_list(TRAINER)) for output in ((), ("-o", "json")))

    assert f"  policy: {name}@{revision} (ConfigMap own-policy, in force)" in text.output.splitlines()
    (line,) = lines(json.output)
    assert line["policy"] == {"name": name, "revision": revision, "place": "ConfigMap own-policy, in force"}


def test_an_accepted_object_that_selects_the_namespace_comes_first(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    of_team = accepted(scheduling("team-a", "team-scheduler", team="a"))
    api.objects[OBJECTS] = listing(of_team, scheduling("rejected", "other-scheduler", team="a"))
    api.objects[DEPLOYMENTS]["items"][0]["spec"]["template"]["spec"]["containers"][0]["args"] += ["--policy-source=crd"]

    outcome = run("check", "-f", "-", "--kubeconfig", kubeconfig, stdin=as_list(TRAINER))

    assert f"  policy: {identity(of_team)} (PlacementPolicy, in force)" in outcome.output.splitlines()
    other = run("check", "-f", "-", "--kubeconfig", kubeconfig, stdin=as_list(TRAINER.namespace("team-b")))
    of_file = identity(scheduling("own", "own-scheduler"))
    assert f"  policy: {of_file} (ConfigMap own-policy, in force)" in other.output.splitlines()


def test_the_webhook_configuration_names_namespace_and_service(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    """It is found in the list, which is all that the roles of `deploy/` allow."""
    called = {"clientConfig": {"service": {"namespace": "other", "name": "svc"}}}
    api.objects[CONFIGURATIONS] = listing({"metadata": {"name": "00-placement-webhook"}, "webhooks": [called]})
    api.objects |= {
        "/api/v1/namespaces/other/services/svc": SERVICE,
        "/apis/apps/v1/namespaces/other/deployments": listing(
            {**SERVERS, "metadata": {"name": OWN, "namespace": "other"}}
        ),
        "/apis/apps/v1/namespaces/other/statefulsets": listing(),
        "/api/v1/namespaces/other/configmaps/own-policy": api.objects.pop(CONFIG_MAP),
    }

    outcome = run("mutate", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", stdin=as_list(TRAINER))

    assert lines(outcome.output)[0]["spec"]["schedulerName"] == "own-scheduler"
    assert "not known: the policy in force" not in outcome.errors


def test_a_replica_of_the_called_service_reports_its_default_policy_beside_the_others_of_the_file(
    api: FakeConfigurationApi, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica follows its file with a delay, and reports its default policy only."""
    called = {"clientConfig": {"service": {"namespace": OWN, "name": "svc"}}}
    api.objects[CONFIGURATIONS] = listing({"metadata": {"name": "00-placement-webhook"}, "webhooks": [called]})
    api.objects[f"/api/v1/namespaces/{OWN}/services/svc"] = SERVICE
    of_file = (scheduling("own", "own-scheduler"), scheduling("team", "team-scheduler", "a"))
    api.objects[CONFIG_MAP] = {"data": {"policy.yaml": "\n---\n".join(orjson.dumps(each).decode() for each in of_file)}}
    asked: list[object] = []

    async def ask(_: object, *of: object) -> Policy:
        asked.append(of[1:])
        return parse_policy(policy_text(scheduling("running", "its-scheduler")), "policy")

    monkeypatch.setattr(policy_in_force, "ask_replica", ask)
    found = policy_in_force.read_policies_in_force(ClientConfig(kubeconfig))

    assert found is not None
    assert [each.name for each in found.policies] == ["running", "team"]
    assert asked == [(OWN, "svc")]


def test_a_given_policy_replaces_the_one_in_force(run: Run, kubeconfig: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_bytes(orjson.dumps(scheduling("given", "given-scheduler")))
    arguments = ("mutate", "-f", "-", "--kubeconfig", kubeconfig, "--policy", file, "-o", "json")

    outcome = run(*arguments, stdin=as_list(TRAINER))

    assert lines(outcome.output)[0]["spec"]["schedulerName"] == "given-scheduler"


@pytest.mark.parametrize(
    ("path", "content", "reported", "place"),
    [
        pytest.param(
            DEPLOYMENTS,
            None,
            f"GET {DEPLOYMENTS}: 404 there is none",
            "built in; that in force is not known",
            id="Deployments cannot be read",
        ),
        pytest.param(
            CONFIG_MAP,
            {"data": {"policy.yaml": "kind: PlacementPolicy"}},
            f"ConfigMap {OWN}/own-policy holds no valid policy",
            "built in; that in force is not known",
            id="the ConfigMap is not valid",
        ),
        pytest.param(DEPLOYMENTS, listing(), "", f"built in; no webhook in namespace {OWN}", id="not installed"),
    ],
)
def test_the_built_in_policy_is_used_and_reported_if_the_other_is_not_known(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path, path: str, content: Any, reported: str, place: str
) -> None:
    api.objects[path] = content

    outcome = run("check", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", stdin=as_list(TRAINER))

    (line,) = lines(outcome.output)
    assert (line["policy"]["revision"], line["policy"]["place"]) == (built_in_policy().revision, place)
    found = [each for each in outcome.errors.splitlines() if each.startswith("not known: the policy in force: ")]
    assert bool(found) is bool(reported)
    assert all(each.removeprefix("not known: the policy in force: ").startswith(reported) for each in found)
    assert all(each.endswith("; the built-in policy is used") for each in found)


def test_an_expired_token_is_no_missing_right_to_read_the_policy(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    api.refused = {CONFIGURATIONS: 401}

    outcome = run("check", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", stdin=as_list(TRAINER))

    assert outcome.errors.endswith(f"not known: the policy in force: GET {CONFIGURATIONS}: 401 because Refused\n")
    assert "policy" not in lines(outcome.output)[0]


def test_what_leads_to_the_config_map_need_not_be_readable_once_it_is_known(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    del api.objects[CONFIGURATIONS]

    outcome = run("mutate", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", stdin=as_list(TRAINER))

    assert lines(outcome.output)[0]["spec"]["schedulerName"] == "own-scheduler"
    assert "not known: the policy in force: " not in outcome.errors


def test_a_cluster_file_has_no_policy_in_force(run: Run, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(as_list(make_node_object("a")))

    outcome = run("check", "-f", "-", "--cluster", cluster, "-o", "json", stdin=as_list(make_pod("p")))

    assert "policy" not in lines(outcome.output)[0]


def test_missed_pods_are_those_of_the_policy_in_force(run: Run, api: FakeConfigurationApi, kubeconfig: Path) -> None:
    """The built-in policy does not know the type `research`, which that of the ConfigMap has."""
    spec: Any = {"workloadTypes": {"research": {"nodeUsage": {"allow": ["training"]}}}}
    api.objects[CONFIG_MAP] = {"data": {"policy.yaml": orjson.dumps(policy("own", **spec)).decode()}}
    api.objects["/api/v1/pods"] = listing(make_pod("p").namespace("team-a").annotate(TYPE, "research").obj())

    outcome = run("missed", "--kubeconfig", kubeconfig, "-o", "json")

    (missed,) = lines(outcome.output)
    assert (missed["pod"], missed["denied"], missed["workloadType"]) == ("team-a/p", None, "research")


@pytest.fixture
def outside(api: FakeConfigurationApi) -> FakeConfigurationApi:
    """Return the API server with a webhook that is served outside the cluster."""
    called = {"name": PODS, "clientConfig": {"url": "https://10.0.0.9:8443/mutate"}}
    api.objects[CONFIGURATIONS] = listing({"metadata": {"name": "our-own"}, "webhooks": [called]})
    api.objects[DEPLOYMENTS] = listing()
    return api


@pytest.mark.parametrize(
    ("workloads", "is_known", "place"),
    [
        pytest.param((SERVERS,), True, "ConfigMap own-policy, in force", id="installed"),
        pytest.param((), False, f"built in; no webhook in namespace {OWN}", id="no webhook anywhere"),
    ],
)
def test_without_a_webhook_no_policy_is_known_to_be_in_force(
    api: FakeConfigurationApi, kubeconfig: Path, workloads: tuple[Any, ...], is_known: bool, place: str
) -> None:
    """Its servers can be outside the cluster, and may be registered later."""
    api.objects[DEPLOYMENTS] = listing(*workloads)

    found = policy_in_force.read_policies_in_force(ClientConfig(kubeconfig))

    assert found is not None
    default = found.policies.default
    assert (found.is_known(default), found.place_of(default)) == (is_known, place)


def test_beside_servers_outside_the_cluster_missed_advises_nothing(
    run: Run, outside: FakeConfigurationApi, kubeconfig: Path
) -> None:
    outside.objects["/api/v1/pods"] = listing(TRAINER.obj())

    text, json = (run("missed", "--kubeconfig", kubeconfig, *output) for output in ((), ("-o", "json")))

    assert text.code == 3
    assert "the policy in force is not known" in text.output
    assert "not known: the policy in force: the webhook is registered" in text.errors
    assert "create again" not in text.output
    assert lines(json.output)[0]["remedy"] is None


@pytest.mark.parametrize(
    ("mark", "line"),
    [
        pytest.param("own@1", "  injected by own@1; in force now: not known", id="another policy"),
        pytest.param("", "  nothing was injected; the policy in force is not known", id="no mark"),
        pytest.param(
            built_in_policy().identity, f"  injected by {built_in_policy().identity}", id="the built-in policy"
        ),
    ],
)
def test_beside_servers_outside_the_cluster_explain_names_no_policy_in_force(
    run: Run, outside: FakeConfigurationApi, kubeconfig: Path, mark: str, line: str
) -> None:
    pod = TRAINER.annotate(built_in_policy().policy_annotation, mark) if mark else TRAINER
    taints = ["maip.mxsf.io/node.usage=training:NoSchedule"]
    usage = {"maip.mxsf.io/node.usage": "training"}
    node = make_node_object("t", labels=usage, taints=taints, capacity={"nvidia.com/gpu": 8})
    outside.objects["/api/v1/nodes"] = listing(node)
    outside.objects["/api/v1/pods"] = listing(pod.obj())
    outside.objects["/api/v1/namespaces/team-a/pods/trainer"] = {"apiVersion": "v1", "kind": "Pod", **pod.obj()}
    outside.objects["/api/v1/namespaces/team-a/events"] = listing()

    outcome = run("explain", "pod/trainer", "-n", "team-a", "--kubeconfig", kubeconfig, "--no-audit")

    assert outcome.code == 0, outcome.errors
    assert line in outcome.output.splitlines()
    assert "create it again" not in outcome.output + outcome.errors


def test_beside_servers_outside_the_cluster_explain_judges_the_pod_as_stored(
    run: Run, outside: FakeConfigurationApi, kubeconfig: Path
) -> None:
    """The built-in policy would make it fit, or deny it."""
    pod = make_pod("p").namespace("team-a").annotate(TYPE, "training").annotate("acme.io/workload-type", "x").gpu(1)
    taints, usage = ["maip.mxsf.io/node.usage=training:NoSchedule"], {"maip.mxsf.io/node.usage": "training"}
    outside.objects["/api/v1/nodes"] = listing(
        make_node_object("t", labels=usage, taints=taints, capacity={"nvidia.com/gpu": 8})
    )
    for name, workload_type in (("p", "training"), ("q", "none")):
        stored = pod.annotate(TYPE, workload_type).obj()
        stored["metadata"]["name"] = name
        outside.objects[f"/api/v1/namespaces/team-a/pods/{name}"] = {"apiVersion": "v1", "kind": "Pod", **stored}
        outside.objects["/api/v1/namespaces/team-a/events"] = listing()

        outcome = run("explain", f"pod/{name}", "-n", "team-a", "--kubeconfig", kubeconfig, "--no-audit")

        assert f"team-a/{name}: Infeasible" in outcome.output.splitlines()
        assert "another domain" not in outcome.output


def test_objects_that_the_servers_do_not_follow_are_not_in_force(
    run: Run, api: FakeConfigurationApi, kubeconfig: Path
) -> None:
    api.objects[OBJECTS] = listing(accepted(scheduling("team-a", "team-scheduler", team="a")))

    outcome = run("mutate", "-f", "-", "--kubeconfig", kubeconfig, "-o", "json", stdin=as_list(TRAINER))

    assert lines(outcome.output)[0]["spec"]["schedulerName"] == "own-scheduler"


def test_a_policy_that_is_not_read_in_time_is_not_known(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(policy_in_force, "_MOST_SECONDS", 0.0)

    found = policy_in_force.read_policies_in_force(ClientConfig(kubeconfig))

    assert found is not None
    assert not found.is_known(found.policies.default)
    assert capsys.readouterr().err.endswith(
        "not known: the policy in force: not read within 0 s; the built-in policy is used\n"
    )
