"""Scheduler profiles: which plugins run, and what they prefer."""

from dataclasses import dataclass

from webhook.kube.resource_names import CPU, MEMORY
from webhook.placement.plugin import FilterPlugin, PreFilterPlugin, ScorePlugin
from webhook.placement.plugins.node_resources_fit import ScoringStrategy, least_requested_score, most_requested_score
from webhook.placement.registry import registrations


@dataclass(frozen=True, slots=True)
class Profile:
    """The plugins of one KubeSchedulerProfile, in their order; `scores` with their weights."""

    name: str
    pre_filters: tuple[PreFilterPlugin, ...]
    filters: tuple[FilterPlugin, ...]
    scores: tuple[tuple[ScorePlugin, int], ...]

    @classmethod
    def of(cls, name: str, strategy: ScoringStrategy) -> "Profile":
        """The profile of every registered plugin, with NodeResourcesFit scoring by `strategy`."""
        table = registrations(strategy)
        return cls(
            name,
            tuple(plugin for plugin, _ in table if isinstance(plugin, PreFilterPlugin)),
            tuple(plugin for plugin, _ in table if isinstance(plugin, FilterPlugin)),
            tuple((plugin, weight) for plugin, weight in table if weight and isinstance(plugin, ScorePlugin)),
        )


# kube-scheduler without a configuration: the emptier node is the better one.
# The defaults are those of k8s.io/kubernetes/pkg/scheduler/apis/config/v1/defaults.go.
DEFAULT = Profile.of("default", ScoringStrategy(least_requested_score, ((CPU, 1), (MEMORY, 1))))

# kube-scheduler with NodeResourcesFit's MostAllocated strategy: the fuller node is the better one, GPUs first of all.
BINPACK = Profile.of("binpack", ScoringStrategy(most_requested_score, ((CPU, 1), (MEMORY, 1), ("nvidia.com/gpu", 5))))

PROFILES = {profile.name: profile for profile in (DEFAULT, BINPACK)}
