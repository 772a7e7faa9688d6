"""Pass changes of the live view to waiting pods, predictions, missed pods, schedulers and the timeout."""

import gc
import os
import time
from collections.abc import Mapping
from typing import Any

from certs.webhook_rules import PODS
from webhook.admission.registered_selection import Selection, selection_of_configuration
from webhook.cluster.cache.follower import ClusterFollower
from webhook.cluster.cache.object_key import Key
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput, required
from webhook.kube.pod.stored_pod import Binding
from webhook.runtime.metrics import Metrics
from webhook.serving.extender.extender_pods import RecentlyBound
from webhook.serving.http.request_head import RegisteredTimeout
from webhook.serving.observed.missed_pods import MissedPods
from webhook.serving.observed.missing_schedulers import MissingSchedulers
from webhook.serving.observed.predictions import PredictionRecorder, Predictions
from webhook.serving.policies.cluster_policies import PolicySource
from webhook.serving.policies.in_force import Policies
from webhook.serving.waiting.waiting_pods import WaitingPods


class ServerFollower(ClusterFollower):
    """Passes changes of the live view to the objects of the server that follow it.

    Pods are compared with `predictions`. The pods of `waiting` are placed in the background. Missed pods are determined
    by the webhook configuration and by the policies that come from `followed`. `timeout` is updated from the webhook
    configuration. `bound` records bound pods.
    """

    def __init__(
        self,
        metrics: Metrics,
        predictions: Predictions,
        waiting: WaitingPods,
        policies: Policies,
        followed: PolicySource | None,
        timeout: RegisteredTimeout | None,
        bound: RecentlyBound | None,
    ) -> None:
        self._waiting, self._followed, self._timeout, self._bound = waiting, followed, timeout, bound
        self._recorder = PredictionRecorder(predictions, metrics, time.time)
        self._missed = MissedPods(policies.in_force, time.monotonic, self._is_policy_known)
        self._missing_schedulers = MissingSchedulers(policies.in_force)
        self._faults = metrics.feed_faults
        metrics.missed_pods.set_function(lambda: self._missed.count)
        policies.follow(lambda _: self._missing_schedulers.forget())

    def _is_policy_known(self) -> bool:
        return self._followed is None or not self._followed.unready_reason()

    def object_changed(self, kind: str, key: Key, content: Mapping[str, Any] | None) -> None:
        """Record the object for the count of missed pods."""
        self._missed.note(kind, key, content)

    def pod_bound(self, pod: Binding, generation: int) -> None:
        """Remove the pod from the waiting pods, and compare the prediction for it."""
        self._waiting.bound(pod)
        if self._bound is not None:
            self._bound.note(pod.identity, generation)
        self._recorder.compare(pod)

    def page_read(self) -> None:
        """Exclude the objects of the page from garbage collection, because they are many and long-lived."""
        gc.freeze()

    def settled(self, snapshot: Snapshot) -> bool:
        """Place pods, and update the predictions for pending pods, the missed pods and the missing schedulers."""
        self._waiting.settle(snapshot)
        self._recorder.follow(snapshot)
        if snapshot.scheduler_evidence is not self._missing_schedulers.judged:
            self._missing_schedulers.look(snapshot)
        return self._missed.work()

    def configuration_changed(self, configuration: Mapping[str, Any] | None) -> None:
        """Use the timeout and the selectors of the registered webhook."""
        if self._timeout is not None:
            self._timeout.follow(configuration)
        self._missed.select(_selection(configuration))

    def failed(self) -> None:
        """Count an internal error."""
        self._faults.inc()


def _selection(configuration: Mapping[str, Any] | None) -> Selection:
    """Return the selection of pods that are sent to the webhook. A `configuration` of None is not known."""
    if configuration is None:
        return Selection.shipped(os.environ.get("POD_NAMESPACE") or "placement-webhook")
    found = selection_of_configuration(configuration)
    if found is None:
        raise InvalidInput([required("webhooks", f"must have {PODS}")])
    return found
