"""The pods that are sent to the webhook, by its configuration or without it."""

from dataclasses import replace
from typing import Any, cast

import pytest
import structlog

from certs.registration import Target, manifest
from tests.support.admission import policy_with
from tests.support.objects.builders import make_node_object, make_pod
from tests.support.servers.server import policies_of
from tests.support.views import made_anew
from webhook.admission.registered_selection import Selection
from webhook.cluster.cache.object_key import Key
from webhook.cluster.objects.scheduler_evidence import SchedulerEvidence
from webhook.cluster.pods.pending_pods import PodKey
from webhook.documents.field import InvalidInput
from webhook.kube.pod.stored_pod import Binding
from webhook.runtime.metrics import Metrics
from webhook.serving.extender.extender_pods import RecentlyBound
from webhook.serving.http.request_head import RegisteredTimeout
from webhook.serving.observed.predictions import Predictions
from webhook.serving.view.server_follower import ServerFollower, _selection
from webhook.serving.waiting.waiting_pods import WaitingPods


def test_the_registered_selectors_count() -> None:
    configuration = manifest(Target())
    configuration["webhooks"][0]["namespaceSelector"] = {"matchLabels": {"placement": "on"}}

    assert _selection(configuration) == Selection.of({"namespaceSelector": {"matchLabels": {"placement": "on"}}})


@pytest.mark.parametrize(("given", "own"), [("", "placement-webhook"), ("own", "own")])
def test_without_a_configuration_the_shipped_selectors_count(
    monkeypatch: pytest.MonkeyPatch, given: str, own: str
) -> None:
    monkeypatch.setenv("POD_NAMESPACE", given)

    assert _selection(None) == Selection.shipped(own)


def test_a_configuration_without_a_webhook_for_pods_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="webhooks: Required value: must have pods"):
        _selection({"webhooks": [{"name": "another"}]})


class Waiting:
    """Records what it is given instead of the waiting pods."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def bound(self, pod: Binding) -> None:
        self.calls.append(pod.identity.name)

    def settle(self, snapshot: object) -> None:
        self.calls.append(snapshot)


def follower_of(metrics: Metrics, waiting: Waiting, *more: Any) -> tuple[ServerFollower, Any]:
    policies = policies_of(policy_with())
    given = (metrics, Predictions(), cast("WaitingPods", waiting), policies)
    return ServerFollower(*given, *(more or (None, None, None))), policies


def test_a_bound_pod_waits_no_longer_and_is_passed_on_to_the_extender() -> None:
    waiting, bound = Waiting(), RecentlyBound()
    follower, _ = follower_of(Metrics(), waiting, None, None, bound)

    follower.pod_bound(Binding.of(make_pod("web").namespace("team-a").node_name("n").obj()), 7)

    assert waiting.calls == ["web"]
    assert [*bound.taken()] == [(PodKey("team-a", "web"), 7)]


def test_a_changed_policy_looks_for_schedulers_again_and_the_same_signs_do_not() -> None:
    waiting = Waiting()
    follower, policies = follower_of(Metrics(), waiting)
    nodes = made_anew([make_node_object("a")])
    snapshot = replace(nodes, scheduler_evidence=SchedulerEvidence(frozenset(), ""))

    def logged() -> list[str]:
        with structlog.testing.capture_logs() as logs:
            follower.settled(snapshot)
        return [each["error"].partition(":")[0] for each in logs]

    assert logged() == ["spec.workloadTypes.training.schedulerName"]
    assert logged() == []
    spec = {"nodeUsage": {"allow": ["training"]}, "schedulerName": "kai-scheduler"}
    policies.replace(policy_with(workloadTypes={"other": spec}, allowedSchedulers=["kai-scheduler"]))
    assert logged() == ["spec.workloadTypes.other.schedulerName"]
    assert waiting.calls == [snapshot] * 3


def test_the_registered_timeout_and_internal_errors_are_followed() -> None:
    metrics, timeout = Metrics(), RegisteredTimeout()
    follower, _ = follower_of(metrics, Waiting(), None, timeout, None)
    configuration = manifest(Target())
    configuration["webhooks"] = [{**each, "timeoutSeconds": 7} for each in configuration["webhooks"]]

    follower.configuration_changed(configuration)
    follower.failed()

    assert timeout.seconds == 7.0
    assert metrics.registry.get_sample_value("placement_webhook_feed_faults_total") == 1


def test_missed_pods_are_exported_once_the_webhook_is_known() -> None:
    metrics = Metrics()
    follower, _ = follower_of(metrics, Waiting())
    pod = make_pod("trainer").namespace("team-a").gpu(1).annotate("maip.mxsf.io/workload-type", "training")

    follower.object_changed("Pod", Key("team-a", "trainer"), pod.obj())
    follower.configuration_changed(None)
    follower.settled(made_anew([make_node_object("a")]))

    assert metrics.registry.get_sample_value("placement_webhook_missed_pods") == 1
