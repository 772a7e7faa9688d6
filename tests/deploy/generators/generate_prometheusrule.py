"""Make the PrometheusRule of the Prometheus operator from the rule file of Prometheus, for `make rules`."""

import textwrap

from tests.support.objects.manifests import DEPLOY

RULES = DEPLOY / "monitoring" / "rules.yaml"
FILE = DEPLOY / "monitoring" / "prometheusrule.yaml"

_HEAD = """\
# The alerts of rules.yaml for the Prometheus operator: `make rules`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: placement-webhook
  labels:
    app.kubernetes.io/name: placement-webhook
    app.kubernetes.io/part-of: placement-webhook
spec:
"""


def text() -> str:
    """Return the PrometheusRule with the groups of the rule file."""
    groups = RULES.read_text().partition("\ngroups:\n")[2]
    return _HEAD + textwrap.indent(f"groups:\n{groups}", "  ")


def main() -> None:
    """Write the PrometheusRule."""
    FILE.write_text(text())


if __name__ == "__main__":
    main()
