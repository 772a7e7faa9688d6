"""The live view of the server, and its followers: predictions, pods that wait, missed pods."""

import gc
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from certs.webhook_rules import PODS
from webhook.admission.registered_selection import Selection, selection_of_configuration
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput, required
from webhook.kube.pod.pod_identity import PodIdentity
from webhook.kube.pod.stored_pod import Binding
from webhook.policy.policy import Policy
from webhook.runtime.metrics import Metrics
from webhook.serving.http.request_head import RegisteredTimeout
from webhook.serving.observed.missed_pods import MissedPods
from webhook.serving.observed.missing_schedulers import MissingSchedulers
from webhook.serving.observed.predictions import PredictionRecorder, Predictions
from webhook.serving.policies.cluster_policies import PolicySource
from webhook.serving.policies.in_force import Policies
from webhook.serving.waiting.waiting_pods import WaitingPods
from webhook.watch.api_server import ClientConfig
from webhook.watch.live import LiveCluster
from webhook.watch.timing import Timing, timing_for


def live_view(
    source: ClientConfig,
    metrics: Metrics,
    predictions: Predictions,
    waiting: WaitingPods,
    policies: Policies,
    followed: PolicySource | None = None,
    webhook_configuration: str = "",
    timeout: RegisteredTimeout | None = None,
    note_bound: Callable[[PodIdentity, int], None] | None = None,
) -> LiveCluster:
    """Return a live view of the cluster of `source` that keeps within the maximum age of the policy in force.

    Bound pods are compared with `predictions`. The pods of `waiting` are placed in the background. Pods that
    `webhook_configuration` selects and `policies` would change count as missed, once `followed` has loaded its
    policies. `timeout` is updated from the same configuration. `note_bound` is called with each pod that is bound, and
    the generation of the first snapshot that shows it.
    """
    recorder = PredictionRecorder(predictions, metrics, time.time)

    def is_judged() -> bool:
        return followed is None or not followed.unready_reason()

    missed = MissedPods(policies.in_force, time.monotonic, is_judged, lambda: live.list_pods_again())
    metrics.missed_pods.set_function(lambda: missed.count)
    missing_schedulers = MissingSchedulers(policies.in_force)

    def on_bound(pod: Mapping[str, Any]) -> None:
        waiting.note_bound(binding := Binding.of(pod))
        if note_bound is not None:
            note_bound(binding.identity, live.next_generation)
        recorder.compare(binding)

    def on_settled(snapshot: Snapshot) -> None:
        waiting.settle(snapshot)
        recorder.follow(snapshot)
        missed.work()
        if snapshot.scheduler_evidence is not missing_schedulers.judged:
            missing_schedulers.look(snapshot)

    def on_configuration(found: Mapping[str, Any] | None) -> None:
        if timeout is not None:
            timeout.follow(found)
        missed.select(_selection(found))

    # The objects of a page are long-lived: freezing them spares the garbage collector tens of thousands of pods.
    live = LiveCluster(
        source.connect,
        timing=_timing(policies.current()),
        on_bound=on_bound,
        on_page=gc.freeze,
        on_settled=on_settled,
        on_object=missed.note,
        on_fault=metrics.feed_faults.inc,
        webhook_configuration=webhook_configuration,
        on_configuration=on_configuration,
    )
    policies.follow(lambda policy: live.pace(_timing(policy)))
    policies.follow(lambda _: missing_schedulers.forget())
    return live


def _selection(configuration: Mapping[str, Any] | None) -> Selection:
    """Return the pods that are sent to the webhook, by its configuration. None means that it is not known.

    Raises:
        InvalidInput: the configuration has no valid webhook for pods.
    """
    if configuration is None:
        return Selection.shipped(os.environ.get("POD_NAMESPACE") or "placement-webhook")
    found = selection_of_configuration(configuration)
    if found is None:
        raise InvalidInput([required("webhooks", f"must have {PODS}")])
    return found


def _timing(policy: Policy) -> Timing:
    return timing_for(policy.spec.placement_check.max_view_age_seconds)
