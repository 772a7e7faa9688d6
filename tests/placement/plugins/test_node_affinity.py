"""NodeAffinity: nodeSelector, required terms, preferred terms, nodes by name."""

from typing import Any

import pytest

from tests.support.objects.builders import PodBuilder, make_pod, match_expressions
from tests.support.plugins import is_scored, node, pod_info, rejections, scores
from webhook.cluster.snapshot import Snapshot
from webhook.placement.framework.interface import PreFilterResult
from webhook.placement.plugins.node_affinity import (
    ERR_REASON_CONFLICT,
    ERR_REASON_ENFORCED,
    ERR_REASON_POD,
    NodeAffinity,
)

_TRAINING = match_expressions(("use", "In", ["training"]))
_HYBRID = match_expressions(("use", "In", ["hybrid"]))
_NODES = (
    node("h", labels={"use": "hybrid", "cards": "4"}),
    node("t", labels={"use": "training", "cards": "8"}),
    node("u"),
)


def _named(*names: str, operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]} for name in names]}


@pytest.mark.parametrize(
    ("pod", "rejected"),
    [
        pytest.param(make_pod(), "", id="nothing asked"),
        pytest.param(make_pod().node_selector("use", "training"), "hu", id="nodeSelector"),
        pytest.param(make_pod().node_selector("use", "training").node_selector("cards", "4"), "htu", id="ANDed"),
        pytest.param(make_pod().require_node(_TRAINING), "hu", id="required"),
        pytest.param(make_pod().require_node(_TRAINING, _HYBRID), "u", id="terms are ORed"),
        pytest.param(make_pod().require_node({}), "htu", id="an empty term matches nothing"),
        pytest.param(make_pod().require_node({}, _TRAINING), "hu", id="nor does it harm others"),
        pytest.param(
            make_pod().require_node(match_expressions(("use", "NotIn", ["no value"])), _HYBRID),
            "tu",
            id="no label value",
        ),
        pytest.param(make_pod().require_node(), "htu", id="no term matches nothing"),
        pytest.param(make_pod().require_node(match_expressions(("use", "NotIn", ["hybrid"]))), "h", id="NotIn"),
        pytest.param(make_pod().require_node(match_expressions(("cards", "Gt", ["5"]))), "hu", id="Gt"),
        pytest.param(make_pod().require_node(match_expressions(("use", "DoesNotExist", []))), "ht", id="DoesNotExist"),
        pytest.param(
            make_pod().require_node(match_expressions(("use", "Exists", []), ("cards", "Lt", ["5"]))), "tu", id="both"
        ),
        pytest.param(make_pod().require_node(_named("t")), "hu", id="by name"),
        pytest.param(make_pod().require_node(_named("t", operator="NotIn")), "t", id="not by name"),
        pytest.param(make_pod().require_node(_TRAINING | _named("h")), "htu", id="labels and name"),
        pytest.param(make_pod().node_selector("use", "training").require_node(_HYBRID), "htu", id="with a selector"),
    ],
)
def test_nodes_that_do_not_match_are_rejected(pod: PodBuilder, rejected: str) -> None:
    assert rejections(NodeAffinity(), pod, *_NODES) == {name: [ERR_REASON_POD] for name in rejected}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod(), PreFilterResult(), id="nothing asked"),
        pytest.param(make_pod().require_node(_TRAINING), PreFilterResult(), id="no names"),
        pytest.param(make_pod().require_node(_named("t")), PreFilterResult(frozenset("t")), id="one name"),
        pytest.param(
            make_pod().require_node(_named("t"), _named("h")), PreFilterResult(frozenset("th")), id="two terms"
        ),
        pytest.param(make_pod().require_node(_named("t"), _TRAINING), PreFilterResult(), id="a term without a name"),
        pytest.param(make_pod().require_node(_named("t"), {}), PreFilterResult(), id="even an empty one"),
        pytest.param(make_pod().require_node(_named("t", operator="NotIn")), PreFilterResult(), id="NotIn names none"),
        pytest.param(
            make_pod().require_node(_named("t", "h")),
            PreFilterResult(reason=ERR_REASON_CONFLICT),
            id="t and h at once",
        ),
        pytest.param(
            make_pod().require_node(_named("t", "h"), _named("u")), PreFilterResult(frozenset("u")), id="or else u"
        ),
    ],
)
def test_nodes_asked_for_by_name(pod: PodBuilder, expected: PreFilterResult) -> None:
    assert NodeAffinity().pre_filter(pod_info(pod), Snapshot.of([])) == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(make_pod().prefer_node(1, _TRAINING), [0, 100, 0], id="the best gets 100 for any weight"),
        pytest.param(make_pod().prefer_node(30, _HYBRID).prefer_node(70, _TRAINING), [42, 100, 0], id="by weight"),
        pytest.param(
            make_pod().prefer_node(30, _TRAINING).prefer_node(70, match_expressions(("use", "Exists", []))),
            [70, 100, 0],
            id="weights add up",
        ),
        pytest.param(make_pod().prefer_node(100, match_expressions(("x", "Exists", []))), [0, 0, 0], id="no match"),
        pytest.param(make_pod().prefer_node(100, {}), [0, 0, 0], id="an empty term matches nothing"),
        pytest.param(make_pod().prefer_node(5, _named("u")), [0, 0, 100], id="by name"),
    ],
)
def test_preferred_terms_raise_the_score(pod: PodBuilder, expected: list[int]) -> None:
    assert scores(NodeAffinity(), pod, *_NODES) == expected


def test_pod_without_preferences_is_not_scored() -> None:
    assert not is_scored(NodeAffinity(), make_pod().require_node(_TRAINING))
    assert is_scored(NodeAffinity(), make_pod().prefer_node(1, {}))


def test_a_node_that_the_profile_excludes_is_not_counted_for_the_pod_too() -> None:
    added: Any = pod_info(make_pod().require_node(match_expressions(("pool", "Exists", []))))
    pod = make_pod().require_node(match_expressions(("zone", "Exists", [])))
    nodes = (node("a", labels={"zone": "z", "pool": "p"}), node("b", labels={"pool": "p"}), node("c"))

    assert rejections(NodeAffinity(added), pod, *nodes) == {"b": [ERR_REASON_POD], "c": [ERR_REASON_ENFORCED]}
