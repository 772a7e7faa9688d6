"""What the webhook has injected into a stored pod, by a policy that is known or not."""

import pytest

from tests.support.objects.builders import make_pod
from webhook.cli.predictions.injected import injected
from webhook.policy.loader import built_in_policy

BUILT_IN = built_in_policy()


@pytest.mark.parametrize(
    ("mark", "is_known", "in_force"),
    [
        ("own@1", True, BUILT_IN.identity),
        ("own@1", False, ""),
        (BUILT_IN.identity, False, BUILT_IN.identity),
    ],
)
def test_a_policy_that_stands_in_is_in_force_only_if_the_pod_names_it(mark: str, is_known: bool, in_force: str) -> None:
    pod = make_pod("p").annotate(BUILT_IN.policy_annotation, mark).obj()

    found = injected(pod, BUILT_IN, is_known=is_known)

    assert (found.policy, found.in_force) == (mark, in_force)
    assert found.to_json()["policyInForce"] == (in_force or None)
