"""The statuses of PlacementPolicies on a real API server: conflicts, missing rights and replicas that disagree."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.acceptance.conftest import registered_as_shipped
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.support.admission import TYPE
from tests.support.objects.policy_objects import Object, policy, served_policies
from tests.support.on_cluster.service_account import limited_to
from tests.support.servers.server import Clock
from webhook.events.recorder import EventRecorder
from webhook.policy.spec.document import API_VERSION, KIND
from webhook.runtime.metrics import Metrics
from webhook.serving.policies.cluster_policies import POLICY_OBJECTS
from webhook.serving.policies.policy_status import GoodGeneration, JudgedObject, StatusWriter
from webhook.watch.api_server import ClientConfig

NOW = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module", autouse=True)
def _policies(control_plane: ControlPlane) -> Iterator[None]:
    with served_policies(control_plane):
        yield


class Writing:
    """A replica that writes statuses with the rights of this kubeconfig."""

    def __init__(self, cluster: Cluster, kubeconfig: Path) -> None:
        self.cluster, self.clock = cluster, Clock()
        self._writer = StatusWriter(ClientConfig(kubeconfig).connect, POLICY_OBJECTS.path, lambda: NOW, self.clock)

    def write(self, *contents: Object, revision: str = "r1") -> list[str]:
        """Write the statuses of the objects, as they were read; return their revisions in the cluster."""
        self.judge(*(JudgedObject(each, GoodGeneration(revision, each["spec"], 1), (), "") for each in contents))
        return [self.read(each["metadata"]["name"]).get("status", {}).get("revision", "") for each in contents]

    def judge(self, *judged: JudgedObject) -> None:
        """Write the statuses of these results."""
        asyncio.run(self._writer.write(judged))

    def read(self, name: str) -> Object:
        found: Object = self.cluster.client.get(KIND, name, api_version=API_VERSION)
        return found

    def apply(self, name: str, **spec: object) -> Object:
        found: Object = self.cluster.client.apply(policy(name, name, **spec)).object
        return found


def test_a_status_is_written_again_when_it_may_be(cluster: Cluster) -> None:
    writing = Writing(cluster, cluster.control_plane.kubeconfig)
    stale, other = writing.apply("a"), writing.apply("b")
    cluster.client.patch(KIND, "a", {"metadata": {"labels": {"new": "label"}}}, api_version=API_VERSION)
    assert writing.write(stale, other) == ["", "r1"], "409 for the first, which has changed since"
    assert writing.write(writing.read("a")) == ["r1"], "of the same generation, at once"

    # Another replica writes another status.
    conditions = writing.read("a")["status"]["conditions"]
    cluster.client.patch(KIND, "a", {"status": {"revision": "r2"}}, api_version=API_VERSION, subresource="status")
    writing.clock.seconds += 59.9
    assert writing.write(writing.read("a")) == ["r2"]
    writing.clock.seconds += 0.1
    assert writing.write(writing.read("a")) == ["r1"]
    assert writing.read("a")["status"]["conditions"] == conditions

    cluster.client.delete(KIND, "a", api_version=API_VERSION)
    assert writing.write(writing.apply("a")) == ["r1"], "a new object of the same name"
    gone = writing.apply("b", queueing="kueue")
    cluster.client.delete(KIND, "b", api_version=API_VERSION)
    writing.judge(JudgedObject(gone, GoodGeneration("r1", gone["spec"], 1), (), ""))


def test_the_last_good_spec_is_stored_as_it_is_until_a_generation_is_accepted(cluster: Cluster) -> None:
    writing = Writing(cluster, cluster.control_plane.kubeconfig)
    tests = [{"name": "one", "pod": {"metadata": {"labels": None}}, "expect": {"outcome": "Unchanged"}}]
    good = writing.apply("e", defaultPriorityClass=None, tests=tests)["spec"]
    assert good["tests"] == tests
    for mode, revision, spec in (("shadow", "r1", good), ("enforce", "r2", {"queueing": "kueue"})):
        bad = writing.apply("e", mode=mode)
        writing.judge(JudgedObject(bad, GoodGeneration(revision, spec, bad["metadata"]["generation"]), ("wrong",), ""))
        status = writing.read("e")["status"]
        assert (status["revision"], status["inForceSpec"]) == (revision, spec)
    writing.write(writing.apply("e", queueing="kueue"))
    assert "inForceSpec" not in writing.read("e")["status"]


def test_a_status_that_may_not_be_written_keeps_no_other_from_being_written(cluster: Cluster, tmp_path: Path) -> None:
    group = API_VERSION.partition("/")[0]
    rule = {"apiGroups": [group], "resources": ["placementpolicies/status"], "verbs": ["patch"], "resourceNames": ["d"]}
    with limited_to(cluster, tmp_path, [rule]) as kubeconfig, capture_logs() as logs:
        writing = Writing(cluster, kubeconfig)
        first, second = writing.apply("c"), writing.apply("d")
        assert writing.write(first, second) == ["", "r1"]
        assert writing.write(first) == [""]

    (log,) = logs
    assert (log["event"], log["policy"]) == ("the status of a PlacementPolicy cannot be written", "c")
    assert "403" in log["error"]


def test_kubectl_apply_prints_the_failing_test_case(cluster: Cluster, tmp_path: Path) -> None:
    with registered_as_shipped(cluster, tmp_path) as webhook:
        case = {"name": "trainers are left alone", "annotations": {TYPE: "training"}}
        failing = policy("f", "f", tests=[case | {"expect": {"outcome": "Unchanged"}}])
        passing = policy("f", "f", tests=[case | {"expect": {"outcome": "Patched"}}])

        denied = cluster.kubectl("apply", "-f", "-", stdin=json.dumps(failing), check=False)
        applied = cluster.kubectl("apply", "-f", "-", stdin=json.dumps(passing))
        cluster.kubectl("label", "placementpolicy", "f", "new=label")

        assert denied.returncode == 1
        assert 'admission webhook "policies.placement.maip.mxsf.io" denied the request: ' in denied.stderr
        assert 'spec.tests[0].expect.outcome: Invalid value: "Unchanged"; "trainers are left alone"' in denied.stderr
        assert (applied.stderr, [each.outcome for each in webhook.world.records]) == ("", ["Denied", "Unchanged"])


def test_kubectl_shows_the_mode_and_the_reason_and_an_event_has_the_errors(cluster: Cluster) -> None:
    source = ClientConfig(cluster.control_plane.kubeconfig)
    recorder = EventRecorder(source.connect, Metrics(), "replica-a")
    writer = StatusWriter(source.connect, POLICY_OBJECTS.path, lambda: NOW, on_rejected=recorder.report_on)
    good = cluster.client.apply(policy("g", "g")).object
    bad = cluster.client.apply(policy("h", "h", mode="shadow")).object

    async def written() -> None:
        judged = JudgedObject(bad, None, ("spec.tests[0]: wrong",), "")
        await writer.write([JudgedObject(good, GoodGeneration("r1", good["spec"], 1), (), ""), judged])
        # Another replica loses the race, and reports nothing.
        await writer.write([judged])
        await recorder.drain(10)

    asyncio.run(written())
    rows = [line.split() for line in cluster.kubectl("get", "pp", "g", "h").stdout.splitlines()]
    assert rows[0] == ["NAME", "MODE", "PRIORITY", "REVISION", "ACCEPTED", "REASON", "AGE"]
    assert [each[:-1] for each in rows[1:]] == [
        ["g", "enforce", "r1", "True", "Applied"],
        ["h", "shadow", "False", "Rejected"],
    ]
    events = cluster.client.list("Event", "default")
    (event,) = (each for each in events if each["involvedObject"].get("uid") == bad["metadata"]["uid"])
    assert (event["reason"], event["count"]) == ("PlacementPolicyRejected", 1)
    assert "spec.tests[0]: wrong" in event["message"]
    assert "PlacementPolicyRejected" in cluster.kubectl("describe", "placementpolicy", "h").stdout
