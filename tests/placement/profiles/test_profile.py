"""The profiles, and the weights of their plugins."""

import pytest

from tests.support.objects.builders import make_pod
from tests.support.plugins import node, pod_info
from webhook.cluster.snapshot import Snapshot
from webhook.placement.plugins.node_volume_limits import NodeVolumeLimits
from webhook.placement.plugins.pod_topology_spread import PodTopologySpread
from webhook.placement.profiles.plugin_registry import DEFAULT_PREEMPTION, PLUGIN_BY_NAME, PluginArgs, modelled_plugins
from webhook.placement.profiles.profile import BINPACK, DEFAULT, PACK_GPUS, PROFILES, Enabled, Profile, UnmodelledStep

_MADE = modelled_plugins(PluginArgs())
SPREAD = PodTopologySpread.name
HARD = PluginArgs().default_constraints[0]._replace(when_unsatisfiable="DoNotSchedule")


def test_preferred_pool_outweighs_all_other_scores_of_the_binpack_profile() -> None:
    """A score is at most 100, so NodeAffinity decides if it weighs more than all others together."""
    assert BINPACK.enabled is not None
    weights = dict(BINPACK.enabled.score)
    node_affinity = weights.pop("NodeAffinity")
    assert node_affinity == sum(weights.values()) + 1


@pytest.mark.parametrize(
    ("args", "required", "preferred"),
    [
        pytest.param(PluginArgs(), [], [SPREAD], id="of kube-scheduler"),
        pytest.param(PluginArgs(default_constraints=(), system_defaulted=False), [], [], id="none"),
        pytest.param(PluginArgs(default_constraints=(HARD,), system_defaulted=False), [SPREAD], [], id="hard"),
    ],
)
def test_default_constraints_that_are_not_known_decide_what_the_spread_of_a_pod_may_change(
    args: PluginArgs, required: list[str], preferred: list[str]
) -> None:
    found = Profile.of("own", args).unmodelled(pod_info(make_pod()), frozenset(), frozenset((SPREAD,)))

    assert [[*each] for each in found] == [required, preferred]


def test_own_plugins_run_only_in_the_profile_of_this_project() -> None:
    """A kube-scheduler does not know them, so no profile that predicts one may run them."""
    own = {_MADE[-1].name}

    assert own & PLUGIN_BY_NAME.keys() == set()
    for profile in PROFILES.values():
        assert (own <= {plugin.name for plugin, _ in profile.scores}) is (profile is PACK_GPUS)


def test_pack_gpus_profile_decides_by_taints_and_affinity_then_cards_then_the_rest() -> None:
    """One point of a plugin outweighs 100 points of the plugins after it together."""
    assert PACK_GPUS.enabled is not None
    weights = dict(PACK_GPUS.enabled.score)
    first = {weights.pop("TaintToleration"), weights.pop("NodeAffinity")}
    cards = weights.pop("PackGpus")

    assert weights == {
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "ImageLocality": 1,
    }
    assert cards == 100 * sum(weights.values()) + 1
    assert first == {100 * (cards + sum(weights.values())) + 1}
    assert [each.name for each in PACK_GPUS.filters] == [each.name for each in DEFAULT.filters]


def test_profiles_are_found_by_name() -> None:
    assert PROFILES == {"default": DEFAULT, "binpack": BINPACK, "pack-gpus": PACK_GPUS}


def test_nominated_pods_keep_their_nodes_with_any_plugins() -> None:
    profile, required = Profile.of("x", enabled=Enabled((), ("NodeName",), ())), {DEFAULT_PREEMPTION, "VolumeZone"}

    found, _ = profile.unmodelled(pod_info(make_pod()), frozenset(required), frozenset())

    assert found == {DEFAULT_PREEMPTION}


@pytest.mark.parametrize(("filters", "is_named"), [((NodeVolumeLimits.name,), True), (("NodeName",), False)])
def test_volume_limits_that_may_not_be_known_are_named_where_the_filter_runs(
    filters: tuple[str, ...], *, is_named: bool
) -> None:
    """It has no scores, but a node without a CSINode has no limits, so the verdict holds."""
    profile = Profile.of("x", enabled=Enabled((), filters, ((SPREAD, 1),)))

    found = profile.unmodelled(pod_info(make_pod()), frozenset(), frozenset((NodeVolumeLimits.name,)))

    assert found == (frozenset(), frozenset((NodeVolumeLimits.name,) if is_named else ()))


@pytest.mark.parametrize(
    ("resources", "applies"),
    [(("nvidia.com/gpumem",), True), (("cpu",), True), (("nvidia.com/gpucores",), False), ((), True)],
)
def test_step_applies_to_pods_that_request_one_of_its_resources_or_shares(
    resources: tuple[str, ...], *, applies: bool
) -> None:
    """Shares that no node offers are no requests of a pod on a snapshot."""
    pod = pod_info(make_pod().requests(cpu=1).gpu(8000, "nvidia.com/gpumem")).normalized_for(Snapshot.of([node("a")]))

    assert pod.shares == ("nvidia.com/gpumem",)
    assert UnmodelledStep("extender", frozenset(resources)).applies_to(pod) is applies
