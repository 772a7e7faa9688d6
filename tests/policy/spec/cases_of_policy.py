"""A policy with test cases."""

from typing import Any

import yaml


def policy_text(tests: list[dict[str, Any]]) -> str:
    head = {"apiVersion": "placement.maip.mxsf.io/v1alpha1", "kind": "PlacementPolicy"}
    return yaml.safe_dump({**head, "spec": {"tests": tests}}, sort_keys=False)
