"""(f) A second round of admission changes nothing; (g) a webhook that is down does what its failurePolicy says."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Webhook
from tests.acceptance.placing.pools import training_pod
from tests.controlplane.client import ApiError
from tests.controlplane.cluster import Cluster
from tests.support.admission import policy_with
from tests.support.scorers import ScorerOfNoNodes
from tests.support.servers.server import World, running_in_thread
from webhook.admission.cluster_view import ClusterView as View
from webhook.cluster.cluster_file import snapshot_from_documents


def test_a_second_round_changes_nothing(cluster: Cluster, webhook: Webhook, tmp_path: Path) -> None:
    """Another webhook, called after ours, changes the pod: ours is asked again."""
    folder = tmp_path / "other"
    folder.mkdir()
    other = World(policy=policy_with(keyDomain="other.example.com"))
    pod = training_pod("twice").annotate("other.example.com/workload-type", "inference")
    with running_in_thread(other, folder) as server:
        cluster.register_webhook(server.url, (folder / "ca.crt").read_text(), configuration="zz-other")
        answer = cluster.create(pod)

    assert [record.outcome for record in other.records] == ["Patched"]
    assert [record.outcome for record in webhook.world.records] == ["Patched", "Unchanged"]
    rounds = {
        key.rpartition("/")[2]: json.loads(value)
        for key, value in cluster.audit_event(answer)["annotations"].items()
        if key.startswith("mutation.webhook.admission.k8s.io/")
    }
    ours = "placement-webhook.maip.mxsf.io"
    assert [(name, each["mutated"]) for name, each in sorted(rounds.items()) if each["webhook"] == ours] == [
        ("round_0_index_0", True),
        ("round_1_index_0", False),
    ]


def test_with_failure_policy_ignore_a_pod_is_stored_unpatched_while_the_webhook_is_down(
    cluster: Cluster, unreachable_webhook: str
) -> None:
    cluster.register_webhook(unreachable_webhook, "", failurePolicy="Ignore")

    pod = cluster.create(training_pod("unpatched")).object

    assert "affinity" not in pod["spec"]
    assert pod["spec"]["schedulerName"] == "default-scheduler"


def test_with_failure_policy_fail_a_pod_is_refused_while_the_webhook_is_down(
    cluster: Cluster, unreachable_webhook: str
) -> None:
    cluster.register_webhook(unreachable_webhook, "", failurePolicy="Fail")

    with pytest.raises(ApiError, match="failed calling webhook"):
        cluster.create(training_pod("refused"))


class BrokenScorer(ScorerOfNoNodes):
    """A fault of ours."""

    def answer(self, *_: object) -> Any:
        raise RuntimeError("out of order")


@pytest.mark.parametrize("failure_policy", ["Ignore", "Fail"])
def test_a_fault_of_ours_is_a_failed_call_and_no_refusal(cluster: Cluster, tmp_path: Path, failure_policy: str) -> None:
    world = World(cluster=View(snapshot_from_documents([]), BrokenScorer()))
    with running_in_thread(world, tmp_path) as server:
        cluster.register_webhook(server.url, (tmp_path / "ca.crt").read_text(), failurePolicy=failure_policy)
        if failure_policy == "Ignore":
            assert "affinity" not in cluster.create(training_pod("unpatched")).object["spec"]
        else:
            with pytest.raises(ApiError, match="decision-1"):
                cluster.create(training_pod("refused"))

    assert [record.outcome for record in world.records] == ["Error"]
