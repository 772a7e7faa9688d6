"""A KubeSchedulerConfiguration is read as kube-scheduler reads it."""

from pathlib import Path
from typing import Any

import pytest

from tests.placement.config.loaded import document, names_of, profile_of, weights_of
from tests.support.objects.builders import make_pod
from tests.support.plugins import node
from webhook.cluster.snapshot import Snapshot
from webhook.documents.field import InvalidInput
from webhook.placement.config.profile_loader import parse_profiles
from webhook.placement.framework.scoring import UtilizationScore
from webhook.placement.plugins.node_resources_fit import ScoringStrategy
from webhook.placement.profiles.plugin_registry import PluginArgs
from webhook.placement.profiles.profile import BINPACK, DEFAULT, Profile
from webhook.placement.scheduler import Scheduler

_DEPLOYED = Path(__file__).parents[3] / "deploy/scheduler/kube-scheduler-configuration.yaml"


def _args(plugin: str, **args: Any) -> Profile:
    return profile_of(pluginConfig=[{"name": plugin, "args": args}])


def _errors(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as raised:
        parse_profiles(text, "s.yaml")
    return [str(error) for error in raised.value.errors]


def test_deployed_file_has_the_default_profile_and_binpack() -> None:
    profiles = parse_profiles(_DEPLOYED.read_bytes(), _DEPLOYED.name)
    assert list(profiles) == ["default-scheduler", "binpack-scheduler"]
    for read, built_in in zip(profiles.values(), (DEFAULT, BINPACK), strict=True):
        assert (read.args, read.enabled, read.unmodelled_steps) == (
            built_in.args,
            built_in.enabled,
            built_in.unmodelled_steps,
        )
        assert (names_of(read), weights_of(read)) == (names_of(built_in), weights_of(built_in))


@pytest.mark.parametrize("fields", [{}, {"profiles": None}, {"profiles": []}, {"profiles": [{"plugins": None}]}])
def test_file_without_profiles_is_the_default_one(fields: dict[str, Any]) -> None:
    profiles = parse_profiles(document(**fields), "s.yaml")
    assert list(profiles) == ["default-scheduler"]
    assert profiles["default-scheduler"].args == PluginArgs()
    assert profiles["default-scheduler"].enabled is None


def test_gated_pod_is_kept_back_by_every_profile() -> None:
    profile = profile_of(plugins={"multiPoint": {"disabled": [{"name": "SchedulingGates"}]}})
    gated = make_pod().spec(schedulingGates=[{"name": "quota"}]).obj()
    assert Scheduler(profile).place(gated, Snapshot.of([node("a")])).verdict == "Waiting"


def test_args_are_read() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    strategy = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "nvidia.com/gpu", "weight": 3}, {"name": "cpu", "weight": 0}],
        "requestedToCapacityRatio": {"shape": shape},
    }
    args = _args("NodeResourcesFit", ignoredResourceGroups=["example.com"], scoringStrategy=strategy).args
    score = UtilizationScore(((0, 0), (100, 100)))
    assert args.scoring_strategy == ScoringStrategy(score, (("nvidia.com/gpu", 3), ("cpu", 1)), counts_zeros=False)
    assert args.ignored_resource_groups == {"example.com"}
    balanced = _args("NodeResourcesBalancedAllocation", resources=[{"name": "nvidia.com/gpu", "weight": 1}]).args
    assert balanced.balanced_resources == ("nvidia.com/gpu",)
    assert _args("InterPodAffinity", hardPodAffinityWeight=0).args.hard_pod_affinity_weight == 0
    constraint = {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
    spread = _args("PodTopologySpread", defaultingType="List", defaultConstraints=[constraint]).args
    assert [(each.topology_key, each.max_skew) for each in spread.default_constraints] == [("rack", 2)]
    assert not spread.system_defaulted


def test_added_affinity_is_demanded_of_every_pod() -> None:
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["gpu"]}]}
    added = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}],
    }
    framework = Scheduler(_args("NodeAffinity", addedAffinity=added))
    snapshot = Snapshot.of([node("a"), node("b", labels={"pool": "gpu"})])
    assert framework.place(make_pod().obj(), snapshot).node == "b"
    alone = framework.place(make_pod().obj(), Snapshot.of([node("a")]))
    assert alone.message == "0/1 nodes are available: 1 node(s) didn't match scheduler-enforced node affinity."


def test_extender_is_named_for_the_pods_that_it_is_asked_about() -> None:
    extender = {
        "urlPrefix": "http://gpu",
        "filterVerb": "filter",
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
    }
    (profile,) = parse_profiles(document(extenders=[extender]), "s.yaml").values()
    framework, snapshot = Scheduler(profile), Snapshot.of([node("a")])
    asked = framework.place(make_pod().gpu(1, "example.com/gpu").obj(), snapshot)
    assert (asked.verdict, asked.unmodelled) == ("Unknown", ("extender http://gpu",))
    assert framework.place(make_pod().obj(), snapshot).verdict == "Feasible"


def test_extender_that_binds_may_exclude_nodes_though_it_does_not_filter() -> None:
    verbs = {"prioritizeVerb": "prioritize", "weight": 1}
    steps = [
        parse_profiles(document(extenders=[{"urlPrefix": "http://gpu", **verbs, **each}]), "s.yaml")[
            "default-scheduler"
        ].unmodelled_steps
        for each in ({}, {"bindVerb": "bind"})
    ]
    assert [each.scores_only for (each,) in steps] == [True, False]


_SHAPE = "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape"


def _broken_line(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    return {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]}


@pytest.mark.parametrize(
    ("profile", "error"),
    [
        pytest.param({"plugin": {}}, "profiles[0].plugin: Forbidden: unknown field", id="unknown field"),
        pytest.param(
            {"plugins": {"score": {"enabled": [{"name": "NodeAffinty"}]}}},
            'profiles[0].plugins.score.enabled[0].name: Invalid value: "NodeAffinty"; must be a plugin that is built',
            id="unknown plugin",
        ),
        pytest.param(
            {"plugins": {"filter": {"enabled": [{"name": "ImageLocality"}]}}},
            'profiles[0].plugins.filter.enabled[0].name: Invalid value: "ImageLocality"; does not run at the extension',
            id="plugin out of place",
        ),
        pytest.param(
            {"plugins": {"multiPoint": {"disabled": [{"name": "PrioritySort"}]}}},
            "profiles[0].plugins.queueSort: Invalid value: []; exactly one plugin must sort the queue",
            id="nothing sorts the queue",
        ),
        pytest.param(
            {"plugins": {"score": {"enabled": [{"name": "NodeAffinity"}, {"name": "NodeAffinity"}]}}},
            'profiles[0].plugins.score.enabled[1].name: Duplicate value: "NodeAffinity"; give each plugin once',
            id="twice",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignored": []}}]},
            "profiles[0].pluginConfig[0].args.ignored: Forbidden: unknown field",
            id="unknown arg",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "BestFit"}}}]},
            'profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "BestFit"; supported values: "',
            id="unknown strategy",
        ),
        pytest.param(
            _broken_line((0, 0), (50, 5), (50, 10)),
            f"{_SHAPE}: Invalid value: [",
            id="two points of one utilization",
        ),
        pytest.param(_broken_line((50, 0), (40, 5)), f"{_SHAPE}: Invalid value: [", id="a line that goes back"),
        pytest.param(_broken_line(), f"{_SHAPE}: Invalid value: []; must hold at least one point", id="no line"),
        pytest.param(
            {"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}]},
            "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101; must be in the range 0-100",
            id="weight out of range",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "PodTopologySpread", "args": {"kind": "NodeAffinityArgs"}}]},
            'profiles[0].pluginConfig[0].args.kind: Invalid value: "NodeAffinityArgs"; must be PodTopologySpreadArgs',
            id="args of another plugin",
        ),
        pytest.param(
            {
                "pluginConfig": [
                    {
                        "name": "PodTopologySpread",
                        "args": {
                            "defaultConstraints": [
                                {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
                            ]
                        },
                    }
                ]
            },
            "profiles[0].pluginConfig[0].args: Invalid value",
            id="constraints beside the system's",
        ),
        pytest.param(
            {"pluginConfig": [{"name": "NodeAffinity"}, {"name": "NodeAffinity"}]},
            'profiles[0].pluginConfig[1].name: Duplicate value: "NodeAffinity"',
            id="args twice",
        ),
        pytest.param(
            {"percentageOfNodesToScore": 101},
            "profiles[0].percentageOfNodesToScore: Invalid value: 101; must be in the range 0-100",
            id="percentage",
        ),
    ],
)
def test_error_names_the_field(profile: dict[str, Any], error: str) -> None:
    found = _errors(document(profiles=[profile]))
    assert len(found) == 1
    assert found[0].startswith(f"s.yaml: {error}")


def test_every_error_is_reported_at_once() -> None:
    profiles = [
        {"schedulerName": "a", "plugins": {"filter": {"enabled": [{"name": "X"}]}}},
        {"schedulerName": "a"},
        {"pluginConfig": [{"name": "Z"}]},
    ]
    assert [error.split(": ")[1] for error in _errors(document(profiles=profiles))] == [
        "profiles[0].plugins.filter.enabled[0].name",
        "profiles[1].schedulerName",
        "profiles[2].schedulerName",
        "profiles[2].pluginConfig[0].name",
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (document(apiVersion="kubescheduler.config.k8s.io/v1beta3"), "s.yaml: apiVersion: Unsupported value"),
        (document(kind="Pod"), "s.yaml: kind: Unsupported value"),
        ("", "s.yaml: Invalid value"),
    ],
)
def test_another_document_is_refused(text: str, error: str) -> None:
    assert _errors(text)[0].startswith(error)


@pytest.mark.parametrize(
    ("own", "managed", "ignored"),
    [
        pytest.param([], [], set(), id="none"),
        pytest.param(["a.io/x"], [], {"a.io/x"}, id="those of the args"),
        pytest.param([], [[("b.io/y", True)]], {"b.io/y"}, id="those of an extender"),
        pytest.param(["a.io/x"], [[("b.io/y", True)]], {"a.io/x", "b.io/y"}, id="of both"),
        pytest.param(["a.io/x"], [[("b.io/y", False)]], {"a.io/x"}, id="the extender only manages one"),
        pytest.param(
            ["a.io/x"],
            [[("b.io/y", True)], [("c.io/z", True), ("a.io/x", False)]],
            {"a.io/x", "b.io/y", "c.io/z"},
            id="of several extenders",
        ),
    ],
)
def test_resources_that_the_args_or_an_extender_ignore_are_ignored_by_every_profile(
    own: list[str], managed: list[list[tuple[str, bool]]], ignored: set[str]
) -> None:
    """Source: k8s.io/kubernetes/pkg/scheduler/scheduler.go, buildExtenders"""
    extenders = [
        {
            "urlPrefix": "http://x",
            "managedResources": [{"name": name, "ignoredByScheduler": is_ignored} for name, is_ignored in each],
        }
        for each in managed
    ]
    config = [{"name": "NodeResourcesFit", "args": {"ignoredResources": own}}]
    given = [{"schedulerName": "one", "pluginConfig": config}, {"schedulerName": "two"}]

    profiles = parse_profiles(document(profiles=given, extenders=extenders), "s.yaml")

    assert profiles["one"].args.ignored_resources == ignored
    assert profiles["two"].args.ignored_resources == ignored - (set(own) - {n for m in managed for n, i in m if i})


@pytest.mark.parametrize(
    ("policy", "affinity", "taints"), [(None, True, False), ("Honor", True, True), ("Ignore", False, False)]
)
@pytest.mark.parametrize("minimum", [None, 3])
def test_default_constraint_has_the_defaults_of_the_api(
    policy: str | None, minimum: int | None, *, affinity: bool, taints: bool
) -> None:
    """Source: k8s.io/api/core/v1/types.go, TopologySpreadConstraint"""
    given = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    given |= {} if policy is None else {"nodeAffinityPolicy": policy, "nodeTaintsPolicy": policy}
    given |= {} if minimum is None else {"minDomains": minimum}

    (found,) = _args("PodTopologySpread", defaultingType="List", defaultConstraints=[given]).args.default_constraints

    assert (found.honors_affinity, found.honors_taints) == (affinity, taints)
    assert (found.max_skew, found.min_domains, found.topology_key) == (2, minimum or 1, "zone")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param([None], ["default-scheduler"], id="a single profile without a name"),
        pytest.param(["own"], ["own"], id="a single one with a name"),
        pytest.param([""], "profiles[0].schedulerName", id="an empty name"),
        pytest.param([None, "own"], "profiles[0].schedulerName", id="one of two without a name"),
        pytest.param(["own", "own"], "profiles[1].schedulerName: Duplicate value", id="a name twice"),
        pytest.param(["own", "other"], ["own", "other"], id="two names"),
    ],
)
def test_only_a_single_profile_has_a_default_name(names: list[str | None], expected: list[str] | str) -> None:
    text = document(profiles=[{} if each is None else {"schedulerName": each} for each in names])
    if isinstance(expected, list):
        profiles = parse_profiles(text, "s.yaml")
        assert list(profiles) == expected
        assert all(each.scheduler_names == {*expected} for each in profiles.values())
    else:
        assert any(expected in error for error in _errors(text))
