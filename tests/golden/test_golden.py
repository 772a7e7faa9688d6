"""Every file in cases/: `why`, `source`, optionally `policy` (a spec), `namespace`, `cluster`; `pod` → `want`.

`want.pod` is the whole admitted pod, `want.operations` the RFC 6902 operations where their form matters;
`REVISION` stands for the policy's revision.
"""

from pathlib import Path
from typing import Any

import jsonpatch
import orjson
import pytest

from tests.admitting import admit_pod, policy_with
from webhook.cluster.file import snapshot_from_documents
from webhook.kube.documents import parse
from webhook.pipeline import Cluster, scheduler_for
from webhook.policy.policy import Policy
from webhook.verdict import Bypassed, Denied, Patched, Verdict

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
KNOWN = {"why", "source", "policy", "namespace", "cluster", "pod", "want"}
WANTED = {"outcome", "pod", "operations", "warnings", "message", "reason", "code", "rules", "verdict"}


def load(path: Path) -> dict[str, Any]:
    (document,) = parse(path.read_text(), path.name)
    assert set(document.content) <= KNOWN, path.name
    assert set(document.content["want"]) <= WANTED, path.name
    return document.content


def cluster_of(case: dict[str, Any], policy: Policy | None = None) -> Cluster | None:
    namespace = case.get("namespace")
    nodes = case.get("cluster", [])
    if namespace is None and not nodes:
        return None
    objects = [{"apiVersion": "v1", "kind": "Node", **node} for node in nodes]
    if namespace is not None:
        objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    text = orjson.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    return Cluster(snapshot_from_documents(parse(text, "cluster")), scheduler_for(policy or policy_with()))


def admitted(case: dict[str, Any], pod: dict[str, Any]) -> tuple[Verdict, Policy]:
    policy = policy_with(**case.get("policy", {}))
    namespace = case.get("namespace", {}).get("name", "default")
    return admit_pod(pod, policy, cluster_of(case, policy), namespace=namespace), policy


def seen(verdict: Verdict, policy: Policy, wanted: dict[str, Any]) -> dict[str, Any]:
    """What `verdict` shows of each thing that is wanted."""
    facts: dict[str, Any] = {"outcome": verdict.outcome, "warnings": list(verdict.warnings)}
    if isinstance(verdict, Bypassed):
        facts["reason"] = verdict.reason
    elif isinstance(verdict, Denied):
        facts |= {"message": verdict.refusal.message, "code": verdict.refusal.code}
    else:
        facts |= {"pod": verdict.pod, "verdict": verdict.placement.verdict}
        facts["rules"] = {rule.name: rule.skipped or list(rule.edits) for rule in verdict.rules}
    if isinstance(verdict, Patched):
        facts["operations"] = verdict.operations
    text = orjson.dumps({key: facts.get(key) for key in wanted})
    found: dict[str, Any] = orjson.loads(text.replace(policy.revision.encode(), b"REVISION"))
    return found


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    case = load(path)
    wanted = {"warnings": [], **case["want"]}

    verdict, policy = admitted(case, case["pod"])

    assert seen(verdict, policy, wanted) == wanted


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_operations_turn_the_original_into_the_admitted_pod(path: Path) -> None:
    case = load(path)
    original = orjson.dumps(case["pod"])

    verdict, _ = admitted(case, case["pod"])

    assert orjson.dumps(case["pod"]) == original, "the pod that came in was touched"
    if isinstance(verdict, Patched):
        assert jsonpatch.apply_patch(orjson.loads(original), verdict.operations) == verdict.pod


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_second_admission_changes_nothing(path: Path) -> None:
    case = load(path)
    verdict, _ = admitted(case, case["pod"])
    if isinstance(verdict, Patched):
        again, _ = admitted(case, orjson.loads(orjson.dumps(verdict.pod)))

        assert (again.outcome, again.warnings) == ("Unchanged", verdict.warnings)
    else:
        assert verdict.outcome in ("Bypassed", "Denied", "Unchanged")


def test_every_case_says_why() -> None:
    assert CASES
    assert [path.name for path in CASES if not load(path).get("why")] == []
