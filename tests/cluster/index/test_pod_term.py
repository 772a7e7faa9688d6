"""Terms of pod affinity."""

from typing import Any

import pytest

from tests.cluster.index.terms import PREFERRED, anti_affinity, info_of
from tests.support.objects.builders import make_pod
from webhook.cluster.index.running_pods import RunningPods

_WEB = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    ("term", "namespace", "expected"),
    [
        pytest.param({"labelSelector": _WEB}, "x", True, id="its own namespace"),
        pytest.param({"labelSelector": _WEB}, "y", False, id="another namespace"),
        pytest.param({"labelSelector": {"matchLabels": {"app": "db"}}}, "x", False, id="other labels"),
        pytest.param({"labelSelector": {}, "namespaces": ["y"]}, "y", True, id="namespaces by name"),
        pytest.param({"labelSelector": {}, "namespaces": ["y"]}, "x", False, id="not its own then"),
        pytest.param({"labelSelector": {}, "namespaceSelector": {}}, "z", True, id="all namespaces"),
        pytest.param(
            {
                "labelSelector": {},
                "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]},
            },
            "y",
            True,
            id="namespaces by labels",
        ),
        pytest.param(
            {"labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "b"}}},
            "x",
            False,
            id="not its own without the labels",
        ),
        pytest.param({"namespaces": ["x"]}, "x", False, id="no selector matches no pod"),
        pytest.param(
            {"labelSelector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}},
            "x",
            True,
            id="a label that is not there",
        ),
    ],
)
def test_pods_that_a_term_selects(term: dict[str, Any], namespace: str, expected: bool) -> None:
    table = RunningPods.of([info_of("a", anti_affinity(**term))])
    assert bool(list(table.carried(namespace, {"team": "a"}, {"app": "web"}))) is expected


def test_equal_terms_of_pods_are_one() -> None:
    required, preferred = anti_affinity(labelSelector=_WEB), anti_affinity(PREFERRED, labelSelector=_WEB)
    table = RunningPods.of([info_of("a", required, required), info_of("b", required.label("k", "v"), preferred)])
    found = {carried.kind: carried for carried in table.carried("x", {}, {"app": "web"})}
    assert {kind: carried.weight for kind, carried in found.items()} == {"anti_required": 0, "preferred": -1}
    rows, times = table.carrier_rows(found["anti_required"])
    assert (rows.tolist(), times.tolist()) == ([0, 0, 1], [1, 1, 1])


def test_duplicate_term_of_a_pod_counts_twice() -> None:
    weighted = {"weight": 5, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": _WEB}}
    pod = make_pod().affinity({"podAffinity": {PREFERRED: [weighted, weighted]}})
    table = RunningPods.of([info_of("a", pod)])
    (carried,) = table.carried("default", {}, {"app": "web"})
    assert table.carrier_rows(carried)[1].tolist() == [2]
