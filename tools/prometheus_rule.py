"""Make the PrometheusRule of the Prometheus operator from the rule file of Prometheus."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from tools import DEPLOY

RULES = DEPLOY / "monitoring" / "rules.yaml"
FILE = DEPLOY / "monitoring" / "prometheusrule.yaml"

_HEAD = """\
# The alerts of rules.yaml for the Prometheus operator: `make docs`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: placement-webhook
  labels:
    app.kubernetes.io/name: placement-webhook
    app.kubernetes.io/part-of: placement-webhook
spec:
"""


def files() -> Mapping[Path, str]:
    """Return the PrometheusRule with the groups of the rule file."""
    groups = RULES.read_text().partition("\ngroups:\n")[2]
    return {FILE: _HEAD + textwrap.indent(f"groups:\n{groups}", "  ")}
