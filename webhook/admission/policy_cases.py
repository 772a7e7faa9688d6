"""Run the test cases of a policy. Pure: a policy always has the same results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from webhook.admission.injection import Bypassed, Denied
from webhook.admission.pipeline import admit_content
from webhook.admission.pod_content import PodContent
from webhook.admission.verdict import Allowed, Verdict
from webhook.documents.documents import JsonObject
from webhook.documents.field import FieldError, InvalidInput, invalid
from webhook.kube.api.admission import pod_request
from webhook.kube.api.json_patch import patched
from webhook.kube.deadline import Expired, in_time, never
from webhook.kube.names import NAMESPACE_NAME_LABEL
from webhook.policy.exempt import request_exemption
from webhook.policy.loader import PlacedPolicy, parse_policies, parse_policy
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet
from webhook.policy.spec.cases import PolicyTest

ABSENT = "absent"
_TOO_MANY = "too many values to compare"
# Each expected item of a list is looked for among all items.
_MOST_COMPARISONS = 100_000


@dataclass(frozen=True, slots=True)
class Difference:
    """A result that is not the expected one, with its path in `expect`."""

    path: str
    expected: Any
    got: Any


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of the test case `name`, number `index` of `spec.tests`. A case without differences has passed."""

    index: int
    name: str
    differences: tuple[Difference, ...]


def run_cases(policy: Policy, expired: Expired = never) -> list[CaseResult]:
    """Return the result of each test case of `policy`.

    Raises:
        DeadlineNearError: `expired()` returned true between two cases.
    """
    cases = enumerate(in_time(policy.spec.tests, expired))
    return [CaseResult(index, each.name, _differences(each, policy)) for index, each in cases]


def parse_tested_policy(text: str | bytes, place: str, expired: Expired = never) -> Policy:
    """Return the policy in `text`; `place` is the prefix of the errors' paths.

    Raises:
        InvalidInput: the text is not one valid PlacementPolicy, or a test case fails; lists all errors.
        DeadlineNearError: `expired()` returned true between two cases.
    """
    return parse_policy(text, place, partial(_errors_of_cases, expired=expired))


def parse_tested_policies(text: str | bytes, place: str) -> list[PlacedPolicy]:
    """Return the policies in `text`, which can have several documents; `place` is the prefix of the errors' paths.

    Raises:
        InvalidInput: a document is not a valid PlacementPolicy, or a test case fails; lists all errors.
    """
    return parse_policies(text, place, _errors_of_cases)


def cases_of_others(found: Sequence[PlacedPolicy]) -> Iterator[tuple[PlacedPolicy, FieldError]]:
    """Yield an error, with its policy, for each test case for a namespace that another of `found` selects by its name.

    The labels of namespaces are not known, so a policy that selects by them can be in force for any of them.
    """
    selecting = [each.policy for each in found if each.policy.spec.namespace_selector is not None]
    for each in found if selecting else ():
        policies = PolicySet.of(each.policy, selecting)
        selector = each.policy.spec.namespace_selector
        if selector is not None and not selector.keys <= {NAMESPACE_NAME_LABEL}:
            continue
        for index, case in enumerate(each.policy.spec.tests):
            other = policies.of_namespace(case.namespace, None)
            if other is not each.policy and any(other is one for one in selecting):
                detail = f"policy {other.name} is in force there; move the case to it, or name another namespace"
                yield each, invalid(f"{each.place}: spec.tests[{index}].namespace", case.namespace, detail)


def _errors_of_cases(policy: Policy, expired: Expired = never) -> Iterator[FieldError]:
    for result in run_cases(policy, expired):
        for each in result.differences:
            path, got = f"spec.tests[{result.index}].expect.{each.path}", f'"{result.name}" gets {each.got}'
            yield invalid(path, each.expected, got)


def _differences(test: PolicyTest, policy: Policy) -> tuple[Difference, ...]:
    try:
        verdict = _verdict(test, policy)
    except InvalidInput as error:
        return (Difference("outcome", test.expect.outcome, f"an invalid pod: {error}"),)
    return tuple(_compared(test, verdict))


def _verdict(test: PolicyTest, policy: Policy) -> Verdict:
    pod, namespace = test.manifest(), test.namespace
    request = pod_request(pod, namespace, user=test.user, groups=test.groups)
    if reason := request_exemption(request, policy.spec):
        return Bypassed(reason)
    return admit_content(PodContent(request, test.namespace_annotations), policy, None, never)


def _compared(test: PolicyTest, verdict: Verdict) -> Iterator[Difference]:
    expect, message = test.expect, _message(verdict)
    if verdict.outcome != expect.outcome:
        yield Difference("outcome", expect.outcome, f"{verdict.outcome}: {message}" if message else verdict.outcome)
    edited = sorted(rule.name for rule in verdict.rules if rule.edits)
    if expect.rules is not None and sorted(expect.rules) != edited:
        yield Difference("rules", list(expect.rules), edited)
    if expect.contains is not None:
        yield from _contained(expect.contains, test.manifest(), verdict)
    if expect.warnings is not None:
        lacking = [text for text in expect.warnings if not any(text in warning for warning in verdict.warnings)]
        if lacking or (not expect.warnings and verdict.warnings):
            yield Difference("warnings", lacking, list(verdict.warnings))
    if expect.message is not None and expect.message not in message:
        yield Difference("message", expect.message, message or ABSENT)


def _message(verdict: Verdict) -> str:
    if isinstance(verdict, Denied):
        return verdict.denial.message
    return verdict.reason if isinstance(verdict, Bypassed) else ""


def _contained(expected: Mapping[str, Any], pod: JsonObject, verdict: Verdict) -> Iterator[Difference]:
    if isinstance(verdict, Allowed):
        yield from missing(expected, patched(pod, verdict.operations), "contains", iter(range(_MOST_COMPARISONS)))
    else:
        yield Difference("contains", expected, f"no pod: {verdict.outcome}")


def missing(expected: Any, got: Any, path: str, steps: Iterator[int]) -> Iterator[Difference]:
    """Yield the parts of `expected` that `got` lacks: keys of its maps, items of its lists, and scalars.

    Each comparison takes one of `steps`. When none are left, the remaining values count as differences.
    """
    if next(steps, None) is None:
        yield Difference(path, expected, _TOO_MANY)
    elif isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key, value in expected.items():
            place = f"{path}.{key}" if "/" not in key else f"{path}[{key}]"
            if key in got:
                yield from missing(value, got[key], place, steps)
            else:
                yield Difference(place, value, ABSENT)
    elif isinstance(expected, list) and isinstance(got, list):
        yield from _missing_items(expected, got, path, steps)
    elif expected != got or isinstance(expected, bool) != isinstance(got, bool):
        yield Difference(path, expected, got)


def _missing_items(expected: list[Any], got: list[Any], path: str, steps: Iterator[int]) -> Iterator[Difference]:
    if len(expected) * len(got) > _MOST_COMPARISONS:
        yield Difference(path, f"{len(expected)} items", f"{len(got)} items, {_TOO_MANY}")
        return
    for index, item in enumerate(expected):
        if not any(next(missing(item, each, path, steps), None) is None for each in got):
            yield Difference(f"{path}[{index}]", item, got)
