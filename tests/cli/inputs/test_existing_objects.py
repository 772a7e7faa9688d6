"""Objects that exist in a cluster, with their pods."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.explained import EVENT, JOB, LOAD, NODES, stored, trainer, write
from tests.support.objects.builders import make_pod
from tests.support.programs.cluster_files import lines
from tests.support.programs.command import Run
from tests.support.servers.fake_configuration_api import FakeConfigurationApi, fake_api
from webhook.cli.inputs import existing_objects
from webhook.cli.inputs.existing_objects import (
    FileObjects,
    LiveObjects,
    event_time,
    events_of,
    pods_of,
    top_owner,
    type_named,
)
from webhook.cluster.cache.resources import Resource
from webhook.documents.documents import Document
from webhook.documents.field import InvalidInput
from webhook.policy.loader import built_in_policy
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import ClientConfig

WAITS = stored(trainer("worker-0", 4))


def test_pods_are_found_through_the_objects_between(run: Run, tmp_path: Path) -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": JOB["metadata"] | {"uid": "d1"}}
    deployment |= {"spec": {"replicas": 1, "template": JOB["spec"]["template"]}}
    owned: dict[str, Any] = {"ownerReferences": [{"kind": "Deployment", "name": "train", "uid": "d1"}]}
    own = {"name": "r", "namespace": "team-a", "uid": "r1"} | owned
    between = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": own}
    pod = stored(trainer("train-a", 4), owner="r1")

    outcome = run("explain", "deploy/train", "-n", "team-a", "--cluster", write(tmp_path, deployment, between, pod))

    assert outcome.output.startswith("team-a/train-a: Pending\n")


@pytest.mark.parametrize("references", [5, [1.5], [{"uid": ["job"]}]])
def test_a_pod_with_malformed_owners_is_no_pod_of_an_object(run: Run, tmp_path: Path, references: Any) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job", "namespace": "team-a", "uid": "job"},
        "spec": {"template": trainer("x", 1).obj()},
    }
    other = make_pod("other").namespace("team-a").obj()
    other["metadata"]["ownerReferences"] = references
    other["status"] = {"phase": "Running"}

    outcome = run("explain", "job/job", "-n", "team-a", "--cluster", write(tmp_path, job, other), "-o", "json")

    assert (outcome.code, "Traceback" in outcome.errors) == (0, False)


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("pod/worker-1", 'Invalid value: "pod/worker-1"; namespace team-a has no such object; did you mean worker-0?'),
        ("pot/worker-0", 'Unsupported value: "pot"; supported values: "appwrapper"'),
    ],
)
def test_what_does_not_exist_is_code_2(run: Run, tmp_path: Path, target: str, error: str) -> None:
    outcome = run("explain", target, "-n", "team-a", "--cluster", write(tmp_path, WAITS))

    assert (outcome.code, outcome.output) == (2, "")
    assert f"Error: TYPE/NAME: {error}" in outcome.errors


@pytest.fixture
def api() -> Iterator[FakeConfigurationApi]:
    namespaced = "/api/v1/namespaces/team-a"
    with fake_api() as api:
        api.objects = {
            "/api/v1/namespaces": {"metadata": {}, "items": []},
            "/api/v1/nodes": {"metadata": {}, "items": NODES},
            "/api/v1/pods": {"metadata": {}, "items": [LOAD.obj(), WAITS]},
            f"{namespaced}/pods/worker-0": WAITS,
            f"{namespaced}/events": {"metadata": {}, "items": [EVENT]},
        }
        yield api


@pytest.mark.slow
def test_a_live_pod_is_read_from_the_api_server(run: Run, api: FakeConfigurationApi, tmp_path: Path) -> None:
    arguments = ("explain", "pod/worker-0", "-n", "team-a", "--kubeconfig", api.kubeconfig(tmp_path), "-o", "json")

    outcome = run(*arguments)

    (found,) = lines(outcome.output)
    assert (outcome.code, found["check"]["verdict"], found["events"][0]["count"]) == (0, "Waiting", 3)
    assert any(line.startswith("not known: the audit record: ") for line in outcome.errors.splitlines())
    assert "the audit record" not in run(*arguments, "--no-audit").errors


@pytest.mark.slow
def test_the_node_pools_of_a_live_pod_are_read_if_karpenter_is_installed(
    run: Run, api: FakeConfigurationApi, tmp_path: Path
) -> None:
    message = "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=gpu)"
    event = EVENT | {"message": message, "source": {"component": "karpenter"}}
    api.objects["/api/v1/namespaces/team-a/events"] = {"metadata": {}, "items": [event]}
    arguments = ("explain", "worker-0", "-n", "team-a", "--kubeconfig", api.kubeconfig(tmp_path), "-o", "json")

    without = run(*arguments, "--no-audit")
    amounts = {"nvidia.com/gpu": "64"}
    pool = {"metadata": {"name": "gpu"}, "spec": {"limits": amounts}, "status": {"resources": amounts}}
    api.objects["/apis/karpenter.sh/v1/nodepools"] = {"metadata": {}, "items": [pool]}
    (found,) = lines(run(*arguments, "--no-audit").output)

    assert "nodepools" not in without.errors
    assert found["autoscalers"][0]["message"] == "NodePool gpu is at its limit of 64 nvidia.com/gpu"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("po", "Pod"),
        ("Pod", "Pod"),
        ("deploy", "Deployment"),
        ("deployments.apps", "Deployment"),
        ("rs", "ReplicaSet"),
        ("sts", "StatefulSet"),
        ("ds", "DaemonSet"),
        ("cj", "CronJob"),
        ("rc", "ReplicationController"),
        ("job", "Job"),
        ("job.batch", "Job"),
    ],
)
def test_a_type_is_named_as_in_kubectl(name: str, kind: str) -> None:
    assert type_named(name, built_in_policy().kinds.values()).kind == kind


def test_a_type_of_the_group_is_that_of_the_group() -> None:
    found = type_named("jobs.batch.volcano.sh", built_in_policy().kinds.values())

    assert (found.kind, found.api_version) == ("Job", "batch.volcano.sh/")


@pytest.mark.parametrize("name", ["job.apps", "deploy.batch", "nope"])
def test_a_type_of_another_group_is_an_error(name: str) -> None:
    with pytest.raises(InvalidInput, match="TYPE/NAME: Unsupported value"):
        type_named(name, built_in_policy().kinds.values())


def owned(kind: str, name: str, owner: str, api_version: str = "batch/v1") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team-a", "uid": name, "ownerReferences": [{"uid": owner}]}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def test_pods_are_found_through_several_objects_between_in_any_order() -> None:
    between = [
        owned("Job", "c", "b"),
        owned("StatefulSet", "b", "a", "apps/v1"),
        owned("ReplicaSet", "a", "o", "apps/v1"),
    ]
    pods = [owned("Pod", "p", "c", "v1"), owned("Pod", "other", "x", "v1")]
    objects = FileObjects([Document("f", each) for each in (*between, *pods)])

    found = pods_of(objects, {"kind": "CronJob", "metadata": {"uid": "o"}}, "team-a")

    assert [each["metadata"]["name"] for each in found] == ["p"]


def test_events_are_those_of_the_pod_itself_in_the_order_of_their_last_time() -> None:
    times: list[dict[str, Any]] = [
        {"lastTimestamp": "t1", "series": {"lastObservedTime": "t4"}},
        {"eventTime": "t3", "lastTimestamp": None},
        {"lastTimestamp": "t2", "eventTime": "t9"},
        {},
    ]
    events = [EVENT | {"lastTimestamp": None, "reason": str(number), **each} for number, each in enumerate(times)]
    events[1]["involvedObject"] = {"kind": "Pod", "name": "worker-0"}
    earlier = EVENT | {"involvedObject": {"kind": "Pod", "name": "worker-0", "uid": "of the pod before"}}
    other = EVENT | {"involvedObject": {"kind": "Pod", "name": "worker-1", "uid": "u1"}}
    objects = FileObjects([Document("f", each) for each in (*events, earlier, other)])

    found = events_of(objects, {"metadata": {"name": "worker-0", "namespace": "team-a", "uid": "u1"}})

    assert [(each["reason"], event_time(each)) for each in found] == [("3", ""), ("2", "t2"), ("1", "t3"), ("0", "t4")]


@pytest.mark.parametrize(
    ("code", "is_extension", "is_reported"), [(404, True, False), (404, False, True), (403, True, True)]
)
def test_a_kind_that_cannot_be_read_is_reported_unless_it_is_not_installed(
    code: int,
    is_extension: bool,
    is_reported: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise ApiServerError("no", code)

    monkeypatch.setattr(existing_objects, "ask", fail)
    kind = Resource("Thing", "x/v1", "things", is_extension=is_extension)

    assert LiveObjects(ClientConfig(None)).list(kind, "") == []
    assert capsys.readouterr().err == ("not known: things: no\n" if is_reported else "")


def _controlled(kind: str, name: str, by: str = "") -> dict[str, Any]:
    """Return an object of apps whose controller is `by`, a kind and a name."""
    owner_kind, _, owner = by.partition("/")
    reference = {"apiVersion": "apps/v1", "kind": owner_kind, "name": owner, "controller": True}
    metadata = {"name": name, "namespace": "a", "ownerReferences": [{"kind": "Node", "name": "n"}, reference]}
    return {
        "apiVersion": "v1" if kind == "Pod" else "apps/v1",
        "kind": kind,
        "metadata": metadata if by else {"name": name, "namespace": "a"},
    }


@pytest.mark.parametrize(
    ("owners", "top"),
    [
        pytest.param([("ReplicaSet", "r", "Deployment/d"), ("Deployment", "d", "")], "d", id="through a ReplicaSet"),
        pytest.param([("ReplicaSet", "r", "Deployment/d")], "r", id="an owner that is absent"),
        pytest.param([("ReplicaSet", "r", "Foo/d")], "r", id="an owner of an unknown kind"),
        pytest.param([], "p", id="no owner that is there"),
        pytest.param([("ReplicaSet", "r", "ReplicaSet/r")], "r", id="a circle"),
    ],
)
def test_the_top_owner_is_the_last_controller_that_can_be_read(owners: list[tuple[str, str, str]], top: str) -> None:
    pod = _controlled("Pod", "p", "ReplicaSet/r")
    objects = FileObjects([Document("", _controlled(*each)) for each in owners])

    assert top_owner(objects, pod, built_in_policy().kinds.values())["metadata"]["name"] == top


PODS = Resource("Pod", "v1", "pods")
NODE_POOLS = Resource("NodePool", "karpenter.sh/v1", "nodepools", is_extension=True)


@pytest.mark.parametrize(
    ("kind", "namespace", "path"),
    [
        (PODS, "team-a", "/api/v1/namespaces/team-a/pods"),
        (PODS, "a/b", "/api/v1/namespaces/a%2Fb/pods"),
        (NODE_POOLS, "", "/apis/karpenter.sh/v1/nodepools"),
    ],
)
def test_an_object_of_a_live_cluster_has_its_kind_and_one_that_is_absent_is_named(
    api: FakeConfigurationApi, tmp_path: Path, kind: Resource, namespace: str, path: str
) -> None:
    """An API server leaves the kind out of the items of a list."""
    api.objects |= {path: {"items": [{"metadata": {"name": "n/1"}}]}, f"{path}/n%2F1": {"metadata": {"name": "n/1"}}}
    objects = LiveObjects(ClientConfig(api.kubeconfig(tmp_path)))

    expected = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "n/1"}}
    assert objects.get(kind, namespace, "n/1") == expected
    assert objects.list(kind, namespace) == [expected]
    with pytest.raises(InvalidInput, match=f"namespace {namespace} has no such object$"):
        objects.get(kind, namespace, "none")
    api.refused = {path: 403, f"{path}/n%2F1": 403}
    with pytest.raises(click.ClickException, match="403 because Refused"):
        objects.get(kind, namespace, "n/1")


@pytest.mark.parametrize(
    ("kind", "status", "is_reported"),
    [(PODS, 404, True), (PODS, 403, True), (NODE_POOLS, 404, False), (NODE_POOLS, 403, True)],
)
def test_objects_that_cannot_be_listed_are_reported_unless_their_kind_is_an_extension_that_is_absent(
    api: FakeConfigurationApi,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: Resource,
    status: int,
    is_reported: bool,
) -> None:
    api.refuses = status

    assert LiveObjects(ClientConfig(api.kubeconfig(tmp_path))).list(kind, "") == []
    assert capsys.readouterr().err.startswith(f"not known: {kind.plural}: ") is is_reported


def of_owner(
    kind: str, api_version: str, name: str, uid: str, owner: str = "", namespace: str = "team-a"
) -> dict[str, Any]:
    references = [{"uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "namespace": namespace, "uid": uid, "ownerReferences": references}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def test_pods_of_an_object_are_those_that_it_owns_directly_or_through_its_own_objects() -> None:
    deployment, other = (of_owner("Deployment", "apps/v1", name, name) for name in ("web", "other"))
    sets = [of_owner("ReplicaSet", "apps/v1", f"{name}-1", f"{name}-1", name) for name in ("web", "other")]
    pods = [
        of_owner("Pod", "v1", f"{owner or 'free'}{namespace}", "", owner, namespace)
        for owner in ("web", "web-1", "other-1", "other", "")
        for namespace in ("team-a", "team-b")
    ]
    objects = FileObjects(Document("f", each) for each in (deployment, other, *sets, *pods))

    assert [each["metadata"]["name"] for each in pods_of(objects, deployment, "team-a")] == ["webteam-a", "web-1team-a"]
    assert pods_of(objects, pods[-1], "team-a") == [pods[-1]]
    with pytest.raises(InvalidInput, match="namespace team-b has no such object; did you mean web-1team-b"):
        objects.get(Resource("Pod", "v1", "pods"), "team-b", "web-1team-a")
