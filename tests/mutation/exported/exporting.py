"""Export a policy, and find parts of its objects."""

from typing import Any

from tests.support.admission import policy_with
from webhook.mutation.exported import Exported, export
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet


def exported(release: int = 36, **spec: Any) -> Exported:
    return export(PolicySet(policy_with(**spec)), release)


def named(name: str, **spec: Any) -> Policy:
    policy = policy_with(**spec)
    policy.name = name
    return policy


def objects_of(found: Exported, kind: str) -> list[dict[str, Any]]:
    return [each for each in found.objects if each["kind"] == kind]


def variables_of(found: Exported) -> dict[str, str]:
    return {each["name"]: each["expression"] for each in found.objects[0]["spec"]["variables"]}
