"""The view of the cluster that admissions use, and the schedulers that predict on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from webhook.cluster.snapshot import Snapshot
from webhook.placement.backend_schedulers import MOST_SCHEDULERS, BackendSchedulers, Unlisted
from webhook.placement.profiles.node_templates import template_nodes
from webhook.placement.profiles.policy_profiles import profiles_for
from webhook.placement.profiles.profile import Profile
from webhook.placement.scheduler import Scheduler
from webhook.placement.scorer import ANSWER_CACHE_BYTES, Scorer
from webhook.placement.waiting.assumed_pods import AssumedPods
from webhook.policy.policy import Policy

_NO_PROFILES: Mapping[str, Profile] = {}


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The view of the cluster that admissions use, and the scorer that predicts on it.

    Without a scorer it only provides the annotations of namespaces. `stale_reason` is the reason not to predict from
    the view, such as its age; it is empty for a current view. The annotations of namespaces are also read from a stale
    view. `assumed` are the waiting pods, or None if there are none. `reserves` returns whether room can be reserved for
    another pod of a namespace; any thread may call it. `profiles` are the profiles of a KubeSchedulerConfiguration by
    schedulerName. `minute` is the time of the view in minutes since the Unix epoch, or 0 if it is not known.
    """

    snapshot: Snapshot
    scorer: Scorer | None
    stale_reason: str = ""
    assumed: AssumedPods[Any] | None = None
    reserves: Callable[[str], bool] = lambda _: True
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    minute: int = 0


def scheduler_for(
    policy: Policy,
    cache_bytes: int = ANSWER_CACHE_BYTES,
    suggestions: int = 1,
    profiles: Mapping[str, Profile] = _NO_PROFILES,
) -> BackendSchedulers:
    """Return the schedulers that predict at admission as `policy` configures it.

    `profiles`, by schedulerName, have precedence over the policy. The caches share `cache_bytes`.
    """
    templates = template_nodes(policy.spec.node_templates)
    own_bytes = cache_bytes // (MOST_SCHEDULERS + len(profiles))
    make = partial(
        Scheduler,
        templates=templates,
        temporary_taints=policy.spec.temporary_taints,
        suggestions=suggestions,
        cache_bytes=own_bytes,
        keeps_scores=False,
    )
    profile = profiles_for(policy.spec)[policy.spec.placement_check.profile]
    unlisted = Unlisted(partial(make, profile, is_listed=False), policy.spec)
    return BackendSchedulers.of(make(profile), make, policy.spec.schedulers, profiles, unlisted)
