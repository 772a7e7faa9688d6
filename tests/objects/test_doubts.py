"""The advice on an object where the API server may run plugins that no object shows."""

import pytest

from tests.objects.completed import advised
from tests.support.admission import USAGE
from tests.support.objects.api_server import namespace


def test_plugin_that_the_api_server_may_run_is_named_if_it_decides() -> None:
    key = "scheduler.alpha.kubernetes.io/node-selector"
    words = f"Feasible as written, Infeasible if the API server runs PodNodeSelector (annotation {key} of the namespace"

    warnings, verdict, operations = advised({}, namespace("team-a", **{key: "rack=r1"}))

    assert (verdict, warnings) == ("Unknown", [f"placement check: Unknown: {words} team-a)"])
    assert operations == advised({})[2]
    assert advised({}, namespace("team-a", **{key: f"{USAGE}=training"}))[:2] == ([], "Feasible")


@pytest.mark.parametrize(
    "annotation",
    [
        "[" * 100_000,
        '{"a":' * 40_000,
        '[{"key": "a", "effect": "NoExecute", "tolerationSeconds": "x"}]',
        '[{"tolerationSeconds": {}}, {"operator": []}]',
    ],
)
def test_malformed_tolerations_of_a_namespace_are_a_refusal_that_is_in_doubt(annotation: str) -> None:
    own = {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]}
    key = "scheduler.alpha.kubernetes.io/defaultTolerations"

    warnings, verdict, _ = advised(own, namespace("team-a", **{key: annotation}))

    assert verdict in ("Unknown", "Feasible")
    assert all("PodTolerationRestriction" in each for each in warnings)
