"""The files of deploy/monitoring, read: rules, queries of the dashboard, and the names in an expression."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from tests.support.objects.manifests import DEPLOY

FOLDER = DEPLOY / "monitoring"
RULES = FOLDER / "rules.yaml"

Object = dict[str, Any]

_METRIC = re.compile(r"\b(?:placement_webhook_|apiserver_|process_)\w+|\bup\b")


def alerts() -> list[Object]:
    """Return the alerts of the rule file."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboard() -> Object:
    """Return the dashboard."""
    content: Object = json.loads((FOLDER / "dashboard.json").read_text())
    return content


def dashboard_queries() -> Iterator[tuple[str, str]]:
    """Yield each query of the dashboard with the title of its panel."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def metrics_in(expression: str) -> set[str]:
    """Return the names of the metrics in an expression."""
    return set(_METRIC.findall(expression))
