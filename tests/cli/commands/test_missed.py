"""`missed`: the pods that were stored while the webhook was away, from a file and from an API server."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from certs.registration import Target, manifest
from tests.support.admission import DOMAIN, TYPE
from tests.support.objects.builders import PodBuilder, make_pod
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api
from webhook.cli.commands.missed import _Search
from webhook.cli.inputs import live, policy_in_force
from webhook.cli.inputs.policies import PlacedPolicies
from webhook.cluster.cache.resources import Resource
from webhook.policy.loader import built_in_policy
from webhook.policy.policy_set import PolicySet
from webhook.policy.spec.document import API_VERSION, KIND

TRAINER = make_pod("trainer").namespace("team-a").gpu(1).annotate(TYPE, "training").creation("2026-03-01T08:00:00Z")
WEB = TRAINER.owner("ReplicaSet", "web-7d4b9c8f5").label("pod-template-hash", "7d4b9c8f5")
ADMITTED = TRAINER.annotate(f"{DOMAIN}/placement-policy", "default@0123456789ab")
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
ASSUMED = "not known: the selectors of the registered webhook; those of deploy/base are assumed\n"


def named(pod: PodBuilder, name: str) -> dict[str, Any]:
    content = pod.obj()
    content["metadata"]["name"] = name
    return content


def namespace(name: str, labels: dict[str, str] | None = None, **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def as_list(*objects: PodBuilder | dict[str, Any]) -> bytes:
    items = [each.obj() if isinstance(each, PodBuilder) else each for each in objects]
    return orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def test_the_missed_pods_are_listed_with_what_to_do(run: Run) -> None:
    pods = (named(WEB, "web-1"), named(WEB, "web-2"), TRAINER, ADMITTED, make_pod("other"))
    outcome = run("missed", "--cluster", "-", stdin=as_list(*pods))

    assert (outcome.code, outcome.errors) == (3, ASSUMED)
    assert [line.split()[:4] for line in outcome.output.splitlines()[:4]] == [
        ["NAMESPACE", "POD", "OWNER", "CREATED"],
        ["team-a", "web-1", "Deployment/web", "2026-03-01T08:00:00Z"],
        ["team-a", "web-2", "Deployment/web", "2026-03-01T08:00:00Z"],
        ["team-a", "trainer", "2026-03-01T08:00:00Z", "NodeUsageAffinity,"],
    ]
    assert outcome.output.splitlines()[-3:] == [
        "3 of 5 pods were missed. What to do:",
        "  kubectl rollout restart deployment/web -n team-a  # 2 pods",
        "  delete and create again: pod/trainer -n team-a",
    ]


@pytest.mark.parametrize(("accepted", "code"), [("True", 0), ("False", 3)])
def test_an_accepted_policy_object_judges_the_pods_of_its_namespaces(run: Run, accepted: str, code: int) -> None:
    policy = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "team-a", "generation": 2},
        "spec": {"mode": "shadow", "namespaceSelector": {"matchLabels": {"team": "a"}}},
        "status": {"conditions": [{"type": "Accepted", "status": accepted, "observedGeneration": 2}]},
    }
    outcome = run("missed", "--cluster", "-", stdin=as_list(TRAINER, policy, namespace("team-a", {"team": "a"})))

    assert outcome.code == code


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """Return a file with the default policy and one in shadow mode for namespaces of team a."""
    head: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    spec = {"mode": "shadow", "namespaceSelector": {"matchLabels": {"team": "a"}}}
    path = tmp_path / "policies.json"
    path.write_bytes(as_list(head, {**head, "metadata": {"name": "team-a"}, "spec": spec}))
    return path


def test_the_policies_of_a_file_judge_the_pods_of_their_namespaces(run: Run, policies: Path) -> None:
    theirs = TRAINER.namespace("team-b")
    given = as_list(TRAINER, theirs, namespace("team-a", {"team": "a"}), namespace("team-b"))

    text = run("missed", "--cluster", "-", "--policy", policies, stdin=given)
    as_json = run("missed", "--cluster", "-", "--policy", policies, "-o", "json", stdin=given)

    assert (text.code, as_json.code) == (3, 3)
    assert "team-b" in text.output
    assert "default@" in text.output
    (line,) = map(orjson.loads, as_json.output.splitlines())
    assert (line["namespace"], line["policy"]["name"]) == ("team-b", "default")


def test_an_accepted_object_comes_before_the_policy_of_its_name_in_a_file(run: Run, policies: Path) -> None:
    enforced = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "team-a", "generation": 1},
        "spec": {"namespaceSelector": {"matchLabels": {"team": "a"}}},
        "status": {"conditions": [{"type": "Accepted", "status": "True", "observedGeneration": 1}]},
    }
    given = as_list(TRAINER, enforced, namespace("team-a", {"team": "a"}))
    assert run("missed", "--cluster", "-", "--policy", policies, stdin=given).code == 3


def test_no_missed_pod_is_exit_code_0(run: Run) -> None:
    outcome = run("missed", "--cluster", "-", stdin=as_list(ADMITTED, make_pod("other")))

    assert (outcome.code, outcome.output) == (0, "no pod was missed, of 2\n")


def test_json_is_one_object_a_pod(run: Run) -> None:
    outcome = run("missed", "--cluster", "-", "-o", "json", stdin=as_list(WEB, TRAINER.annotate(TYPE, "trainnig")))

    first, second = map(orjson.loads, outcome.output.splitlines())
    assert outcome.code == 3
    assert first == {
        "pod": "team-a/trainer",
        "namespace": "team-a",
        "name": "trainer",
        "owner": {"kind": "Deployment", "name": "web"},
        "created": "2026-03-01T08:00:00Z",
        "workloadType": "training",
        "rules": ["NodeUsageAffinity", "GpuProduct", "BinPacking", "SchedulerName"],
        "denied": None,
        "remedy": "kubectl rollout restart deployment/web -n team-a",
    }
    assert (second["owner"], second["rules"]) == (None, [])
    assert "trainnig" in second["denied"]


def test_several_errors_of_a_pod_are_in_one_line(run: Run) -> None:
    pod = TRAINER.annotate(TYPE, "trainnig").annotate("maip.mxsf.io/gpu-memory", "80GB")
    outcome = run("missed", "--cluster", "-", stdin=as_list(pod))

    assert '"inference", "training"; metadata.annotations[maip.mxsf.io/gpu-memory]: ' in outcome.output
    assert "\\n" not in outcome.output


@pytest.mark.parametrize(("number", "rest"), [(2, 0), (3, 1), (5, 3)])
def test_the_text_is_limited(run: Run, number: int, rest: int) -> None:
    pods = [named(TRAINER, f"trainer-{each}") for each in range(number)]
    outcome = run("missed", "--cluster", "-", "--limit", 2, stdin=as_list(*pods))

    assert outcome.output.count(" more; -o json has all") == (2 if rest else 0)
    assert outcome.output.count(f"and {rest} more; -o json has all") == (2 if rest else 0)
    assert f"{number} of {number} pods were missed" in outcome.output


def test_a_command_quotes_the_name_of_an_owner(run: Run) -> None:
    outcome = run("missed", "--cluster", "-", stdin=as_list(TRAINER.owner("Deployment", "web; reboot")))

    assert outcome.output.splitlines()[-1] == "  kubectl rollout restart 'deployment/web; reboot' -n team-a"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"{}", "holds no Pod; give what `kubectl get pods,namespaces -A -o json` prints"),
        (as_list({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}), "holds no Pod"),
    ],
)
def test_a_file_without_pods_is_an_error(run: Run, given: bytes, message: str) -> None:
    outcome = run("missed", "--cluster", "-", stdin=given)

    assert outcome.code == 2
    assert message in outcome.errors or "kind" in outcome.errors


def test_one_cluster_is_read(run: Run) -> None:
    outcome = run("missed", "--cluster", "-", "--in-cluster")

    assert outcome.code == 2
    assert "--cluster and --in-cluster are mutually exclusive; give one of them." in outcome.errors


@pytest.fixture
def api() -> Iterator[FakeConfigurationApi]:
    """Return an API server with a missed pod, and a namespace with a default type that is not selected."""
    listing = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}
    with fake_api() as api:
        api.objects = {
            "/api/v1/namespaces": listing | {"items": [namespace("team-a"), namespace("team-b", {"placement": "off"})]},
            "/api/v1/pods": listing | {"items": [TRAINER.obj(), TRAINER.namespace("team-b").obj()]},
        }
        yield api


def test_the_selectors_of_the_registered_webhook_are_used(run: Run, api: FakeConfigurationApi, tmp_path: Path) -> None:
    arguments = ("missed", "-o", "json", "--kubeconfig", api.kubeconfig(tmp_path))
    unknown = run(*arguments)

    configuration = manifest(Target())
    off = {"key": "placement", "operator": "NotIn", "values": ["off"]}
    for webhook in configuration["webhooks"]:
        webhook["namespaceSelector"]["matchExpressions"].append(off)
    listing = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}
    api.objects[CONFIGURATIONS] = listing | {"items": [configuration]}
    for kind in ("deployments", "statefulsets"):
        api.objects[f"/apis/apps/v1/namespaces/placement-webhook/{kind}"] = listing | {"items": []}
    known = run(*arguments)

    assert [orjson.loads(line)["pod"] for line in unknown.output.splitlines()] == ["team-a/trainer", "team-b/trainer"]
    assert unknown.errors.endswith(ASSUMED)
    assert [orjson.loads(line)["pod"] for line in known.output.splitlines()] == ["team-a/trainer"]
    assert "the webhook is registered, and its servers are not in namespace placement-webhook" in known.errors
    assert ASSUMED not in known.errors


def test_a_condition_that_cannot_be_evaluated_is_reported(run: Run) -> None:
    configuration = manifest(Target())
    for webhook in configuration["webhooks"]:
        webhook["matchConditions"] = [{"name": "not-of-bots", "expression": "request.userInfo.groups.all(g, g != 'b')"}]
    outcome = run("missed", "--cluster", "-", stdin=as_list(TRAINER, configuration))

    assert outcome.code == 3
    assert outcome.errors == "not known: whether the condition not-of-bots excludes 1 of these pods\n"


def test_a_malformed_configuration_is_one_clear_error(run: Run) -> None:
    configuration = manifest(Target())
    for webhook in configuration["webhooks"]:
        webhook["namespaceSelector"] = ["placement"]
    outcome = run("missed", "--cluster", "-", stdin=as_list(TRAINER, configuration))

    assert outcome.code == 2
    assert "MutatingWebhookConfiguration 00-placement-webhook" in outcome.errors
    assert "namespaceSelector" in outcome.errors


def test_a_list_of_pods_that_begins_again_counts_each_pod_once() -> None:
    """The condition of the webhook cannot be decided for the pods."""
    configuration = manifest(Target())
    configuration["webhooks"][0]["matchConditions"] = [{"name": "by-user", "expression": "request.userInfo.uid == '1'"}]
    search = _Search(PlacedPolicies(PolicySet(built_in_policy())))
    search.add("MutatingWebhookConfiguration", configuration)

    for _ in range(2):
        search.forget_pods()
        search.add("Pod", TRAINER.obj())

    assert ([each.name for each in search.found], search.pods, dict(search.undecided)) == (
        ["trainer"],
        1,
        {"by-user": 1},
    )


def test_pods_and_commands_are_limited_each_by_itself(run: Run) -> None:
    pods = [named(WEB, f"web-{number}") for number in range(3)]
    outcome = run("missed", "--cluster", "-", "--limit", 2, stdin=as_list(*pods, named(TRAINER, "trainer")))

    assert outcome.output.splitlines()[3] == "and 2 more; -o json has all"
    assert outcome.output.splitlines()[-2:] == [
        "  kubectl rollout restart deployment/web -n team-a  # 3 pods",
        "  delete and create again: pod/trainer -n team-a",
    ]


def test_a_pod_without_a_time_has_none_in_json(run: Run) -> None:
    pod = make_pod("trainer").namespace("team-a").gpu(1).annotate(TYPE, "training")

    assert orjson.loads(run("missed", "--cluster", "-", "-o", "json", stdin=as_list(pod)).output)["created"] is None


def test_pods_of_a_list_that_begins_again_are_counted_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of a list expire."""

    def listed(_: object, resources: Iterable[Resource], on_page: Callable[..., None]) -> None:
        for resource in resources:
            for begins in (True, False, True):
                on_page(resource, [TRAINER.obj()] if resource.kind == "Pod" else [], begins)

    monkeypatch.setattr(live, "list_resources", listed)
    monkeypatch.setattr(policy_in_force, "read_policies_in_force", lambda _: None)

    outcome = run("missed", "--kubeconfig", "absent", "-o", "json")

    assert (outcome.code, len(outcome.output.splitlines())) == (3, 1)
