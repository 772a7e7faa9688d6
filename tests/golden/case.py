"""Read a golden case, admit its pod and show what the verdict says of what the case wants.

A file has `why`, `source`, `pod` and `want`, and optionally `policy` (a spec), `policies`, `namespace` and `cluster`.
`source` is a section of the documentation; what the section follows from comes after a semicolon. `policies` are
documents without apiVersion and kind; the one that selects the namespace is in force. `want.pod` is the whole admitted
pod, `want.operations` the RFC 6902 operations where their form matters; `REVISION` stands for the policy's revision.

`want.rules` names the rules that the case is about: the pod is admitted under these alone, so that a rule added later
changes no case that is not about it. Cases with `operations` pin what all rules do together.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.admission import admit_pod, policy_with
from webhook.admission import injection
from webhook.admission.cluster_view import ClusterView, scheduler_for
from webhook.admission.injection import Bypassed, Denied
from webhook.admission.verdict import Verdict
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.documents.documents import parse
from webhook.kube.api.json_patch import patched
from webhook.mutation.rules import RULES
from webhook.policy.loader import parse_policies
from webhook.policy.policy import Policy
from webhook.policy.policy_documents import policy_set
from webhook.policy.spec.document import API_VERSION, KIND

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
KNOWN = {"why", "source", "policy", "policies", "namespace", "cluster", "pod", "want"}
WANTED = {"outcome", "pod", "operations", "warnings", "message", "reason", "code", "rules", "verdict"}


def load(path: Path) -> dict[str, Any]:
    """The case in `path`, for the caller to change."""
    case: dict[str, Any] = orjson.loads(_as_json(path))
    return case


@cache
def _as_json(path: Path) -> bytes:
    """The same, since a file is read by many tests and YAML is slow to read."""
    return orjson.dumps(read(path.read_text(), path.name))


def read(text: str, name: str) -> dict[str, Any]:
    """The case in `text`; a key that no case has is an error."""
    (document,) = parse(text, name)
    assert set(document.content) <= KNOWN, name
    assert set(document.content["want"]) <= WANTED, name
    return document.content


def cluster_of(case: dict[str, Any], policy: Policy | None = None) -> ClusterView | None:
    """The view of the case's nodes and namespace; None where it has neither."""
    namespace = case.get("namespace")
    nodes = case.get("cluster", [])
    if namespace is None and not nodes:
        return None
    objects = [{"apiVersion": "v1", "kind": "Node", **node} for node in nodes]
    if namespace is not None:
        objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    text = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return ClusterView(snapshot_from_documents(parse(text, "cluster")), scheduler_for(policy or policy_with()))


def admitted(case: dict[str, Any], pod: dict[str, Any]) -> tuple[Verdict, Policy]:
    """The verdict on `pod` under the case's policy and rules."""
    policy = policy_of(case)
    namespace = case.get("namespace", {}).get("name", "default")
    with _only(rules_of(case)):
        return admit_pod(pod, policy, cluster_of(case, policy), namespace=namespace), policy


def policy_of(case: dict[str, Any]) -> Policy:
    """The policy of the case, or the one of several for its namespace."""
    if "policies" not in case:
        return policy_with(**case.get("policy", {}))
    documents = [{"apiVersion": API_VERSION, "kind": KIND, **each} for each in case["policies"]]
    text = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    namespace = case["namespace"]
    return policy_set(parse_policies(text, "policies")).of_namespace(namespace["name"], namespace.get("labels", {}))


def rules_of(case: dict[str, Any]) -> set[str]:
    """The names of the rules that apply in the case."""
    want = case["want"]
    return {*RULES} if "rules" not in want or "operations" in want else set(want["rules"])


@contextmanager
def _only(names: set[str]) -> Iterator[None]:
    """Admission under the rules of these names, until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(injection, "RULES", {name: rule for name, rule in RULES.items() if name in names})
        yield


def wanted(case: dict[str, Any]) -> dict[str, Any]:
    """What the case wants; no warnings where it names none."""
    return {"warnings": [], **case["want"]}


def seen(case: dict[str, Any]) -> dict[str, Any]:
    """What the verdict on the case's pod shows of each thing that is wanted; None where it has no such thing."""
    verdict, policy = admitted(case, case["pod"])
    facts: dict[str, Any] = {"outcome": verdict.outcome, "warnings": list(verdict.warnings)}
    if isinstance(verdict, Bypassed):
        facts["reason"] = verdict.reason
    elif isinstance(verdict, Denied):
        facts |= {"message": verdict.denial.message, "code": verdict.denial.code}
    else:
        facts |= {"pod": patched(case["pod"], verdict.operations), "verdict": verdict.placement.verdict}
        named = case["want"].get("rules", {})
        facts["rules"] = {rule.name: rule.skipped or list(rule.edits) for rule in verdict.rules if rule.name in named}
    if verdict.outcome == "Patched":
        facts["operations"] = verdict.operations
    text = orjson.dumps({key: facts.get(key) for key in wanted(case)})
    found: dict[str, Any] = orjson.loads(text.replace(policy.revision.encode(), b"REVISION"))
    return found
