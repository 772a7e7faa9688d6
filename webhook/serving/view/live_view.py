"""The live view of the server."""

from webhook.policy.policy import Policy
from webhook.runtime.metrics import Metrics
from webhook.serving.extender.extender_pods import RecentlyBound
from webhook.serving.http.request_head import RegisteredTimeout
from webhook.serving.observed.predictions import Predictions
from webhook.serving.policies.cluster_policies import PolicySource
from webhook.serving.policies.in_force import Policies
from webhook.serving.view.server_follower import ServerFollower
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
    bound: RecentlyBound | None = None,
) -> LiveCluster:
    """Return a live view of the cluster of `source`, as old as the policy allows, with a ServerFollower."""
    live = LiveCluster(
        source.connect,
        ServerFollower(metrics, predictions, waiting, policies, followed, timeout, bound),
        timing=_timing(policies.current()),
        webhook_configuration=webhook_configuration,
    )
    policies.follow(lambda policy: live.pace(_timing(policy)))
    return live


def _timing(policy: Policy) -> Timing:
    return timing_for(policy.spec.placement_check.max_view_age_seconds)
