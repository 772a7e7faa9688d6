"""Write the rules of the webhook configuration from the table of kinds."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from certs.registration import MANIFEST
from certs.webhook_rules import namespace_match_conditions, workload_match_conditions, workload_rules
from tools import DEPLOY, ROOT
from webhook.kube.workloads.workload_kinds import BUILT_IN_KINDS
from webhook.policy.loader import built_in_policy

_BEGIN, _END = "    # Begin of the generated part: `make docs`.\n", "    # End of the generated part.\n"


def files() -> Mapping[Path, str]:
    """Return both copies of the manifest."""
    paths = (ROOT / "certs" / MANIFEST, DEPLOY / "base" / MANIFEST)
    return {path: _generated(path.read_text()) for path in paths}


def _generated(text: str) -> str:
    """Return the text of the manifest with its generated parts replaced."""
    for number, part in enumerate((_workloads(), _namespaces()), start=1):
        pieces = text.split(_BEGIN)
        _, end, rest = pieces[number].partition(_END)
        pieces[number] = f"{part}{end}{rest}"
        text = _BEGIN.join(pieces)
    return text


def _workloads() -> str:
    rules = "".join(line for rule in workload_rules(BUILT_IN_KINDS) for line in _rule_lines(rule))
    conditions = workload_match_conditions(BUILT_IN_KINDS, built_in_policy().spec.key_domain)
    return f"    rules:\n{rules}    matchConditions:\n{_condition_text(conditions)}"


def _namespaces() -> str:
    conditions = namespace_match_conditions(built_in_policy().spec.key_domain)
    return f"    matchConditions:\n{_condition_text(conditions)}"


def _rule_lines(rule: dict[str, Any]) -> Iterator[str]:
    (group,) = rule["apiGroups"]
    shown = group or '""'
    yield f"      - apiGroups: [{shown}]\n"
    yield '        apiVersions: ["*"]\n'
    yield f"        operations: [{', '.join(rule['operations'])}]\n"
    yield f"        resources: [{', '.join(rule['resources'])}]\n"
    yield f"        scope: {rule['scope']}\n"


def _condition_text(conditions: Iterable[dict[str, str]]) -> str:
    return "".join(
        f"      - name: {each['name']}\n        expression: >-\n{_folded(each['expression'])}\n" for each in conditions
    )


def _folded(expression: str) -> str:
    indent = " " * 10
    return textwrap.fill(
        expression,
        118,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
