"""The plugins at each extension point."""

from typing import Any

import pytest

from tests.placement.config.loaded import names_of, profile_of, weights_of


@pytest.mark.parametrize(
    ("plugins", "filters", "weights"),
    [
        pytest.param(
            {"filter": {"disabled": [{"name": "NodePorts"}]}, "score": {"disabled": [{"name": "*"}]}},
            {"NodePorts": False, "NodeName": True},
            {},
            id="off at a point",
        ),
        pytest.param(
            {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}},
            {"TaintToleration": False},
            {"TaintToleration": None, "NodeAffinity": 2},
            id="off everywhere",
        ),
        pytest.param(
            {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 7}]}},
            {"NodeResourcesFit": True},
            {"NodeResourcesFit": 7, "NodeAffinity": 2},
            id="another weight",
        ),
        pytest.param(
            {"multiPoint": {"enabled": [{"name": "NodeResourcesFit", "weight": 5}]}},
            {"NodeResourcesFit": True},
            {"NodeResourcesFit": 5},
            id="another weight for all points",
        ),
        pytest.param(
            {
                "multiPoint": {"enabled": [{"name": "NodeAffinity", "weight": 5}]},
                "score": {"enabled": [{"name": "NodeAffinity", "weight": 9}]},
            },
            {},
            {"NodeAffinity": 9},
            id="the point's weight goes first",
        ),
        pytest.param(
            {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]}},
            {},
            {"ImageLocality": 1, "NodeAffinity": None},
            id="one alone, and no weight is 1",
        ),
        pytest.param(
            {
                "multiPoint": {
                    "disabled": [{"name": "*"}],
                    "enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}, {"name": "NodeName"}],
                }
            },
            {"NodeName": True, "NodeResourcesFit": False},
            {"NodeResourcesFit": None},
            id="all off but a few",
        ),
    ],
)
def test_plugins_are_switched(
    plugins: dict[str, Any], filters: dict[str, bool], weights: dict[str, int | None]
) -> None:
    profile = profile_of(plugins=plugins)
    assert {name: name in names_of(profile) for name in filters} == filters
    assert {name: weights_of(profile).get(name) for name in weights} == weights


def test_plugins_that_a_point_names_go_first() -> None:
    plugins = {"filter": {"enabled": [{"name": "NodePorts"}, {"name": "NodeAffinity"}]}}
    assert names_of(profile_of(plugins=plugins))[:3] == ["NodePorts", "NodeAffinity", "NodeUnschedulable"]


def test_a_plugin_that_only_a_point_enables_runs_after_the_others() -> None:
    ports = [{"name": "NodePorts"}]
    plugins = {"multiPoint": {"disabled": ports}, "filter": {"enabled": [{"name": "TaintToleration"}, *ports]}}
    names = [each.name for each in profile_of(plugins=plugins).filters]

    assert (names[0], names[-1]) == ("TaintToleration", "NodePorts")
