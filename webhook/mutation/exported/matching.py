"""Which pods an exported policy concerns, as the webhook decides it: the rule, selector and match condition."""

from collections.abc import Iterator
from typing import Any

from webhook.kube.names import DAEMON_SET, MIRROR_POD_ANNOTATION, NAMESPACE_NAME_LABEL
from webhook.kube.selectors import LabelSelector, label_matches
from webhook.mutation.exported.cel import Cel, all_of, any_of, choose, matches_any, negated, stripped, text, texts
from webhook.mutation.exported.namespaces import NAMESPACE
from webhook.policy.policy import Policy, opt_out_namespaces
from webhook.policy.spec.admission import Exemption

_SERVICE_ACCOUNT = "system:serviceaccount:"
_OWN: Cel = "object.metadata.annotations"
_DEFAULTS: Cel = "namespaceObject.metadata.annotations"
_LABELS: Cel = "namespaceObject.metadata.?labels.orValue({})"


def constraints(excluded: tuple[str, ...]) -> dict[str, Any]:
    """Return the matchConstraints: pods that are created, in all namespaces but those in `excluded`."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "Namespaced"}
    namespaces = {"key": NAMESPACE_NAME_LABEL, "operator": "NotIn", "values": list(excluded)}
    selector: dict[str, Any] = {"matchExpressions": [namespaces]}
    return {"matchPolicy": "Equivalent", "namespaceSelector": selector, "objectSelector": {}, "resourceRules": [rule]}


def condition(policy: Policy, others: tuple[Policy, ...]) -> Cel:
    """Return whether `policy` may inject into the pod or deny it; policies in `others` come before it.

    It is one expression, so that a pod without annotations costs its first part only.
    """
    conditions = [_names_type(policy), f'object.spec.?nodeName.orValue("") == ""']
    conditions.append(f"!(has({_OWN}) && {text(MIRROR_POD_ANNOTATION)} in {_OWN})")
    kind = f"o.kind == {text(DAEMON_SET)}"
    conditions.append(f"!object.metadata.?ownerReferences.orValue([]).exists(o, {kind})")
    conditions += [negated(_is_exempt(each)) for each in policy.spec.exemptions]
    conditions.append(negated(_opts_out(policy)))
    if policy.spec.namespace_selector is not None and _is_selected(policy) is not None:
        conditions.append(_is_selected(policy) or "true")
    conditions += [negated(_is_selected(each) or "false") for each in others if _may_both_select(policy, each)]
    return all_of(conditions)


def _names_type(policy: Policy) -> Cel:
    if policy.spec.require_type is not None:
        return "true"
    key = text(policy.keys.workload_type)
    return any_of(f"(has({at}) && {key} in {at})" for at in (_OWN, _DEFAULTS))


def _opts_out(policy: Policy) -> Cel:
    key = text(policy.keys.inject)
    value = choose(
        ((f"has({at}) && {key} in {at}", f'{stripped(f"{at}[{key}]")} == "disabled"') for at in (_OWN, _DEFAULTS)),
        "false",
    )
    return all_of((value, matches_any(NAMESPACE, opt_out_namespaces(policy.spec))))


def _is_exempt(exemption: Exemption) -> Cel:
    user = "request.userInfo.username"
    conditions = []
    if exemption.users is not None:
        conditions.append(matches_any(user, exemption.users))
    if exemption.groups is not None:
        conditions.append(f"request.userInfo.?groups.orValue([]).exists(g, {matches_any('g', exemption.groups)})")
    if exemption.service_accounts is not None:
        patterns = [_SERVICE_ACCOUNT + each.removeprefix(_SERVICE_ACCOUNT) for each in exemption.service_accounts]
        conditions.append(matches_any(user, patterns))
    if exemption.namespaces is not None:
        conditions.append(matches_any(NAMESPACE, exemption.namespaces))
    if exemption.pod_labels is not None:
        conditions.append(_selects(exemption.pod_labels.requirements, "object.metadata.?labels.orValue({})"))
    return all_of(conditions)


def _is_selected(policy: Policy) -> Cel | None:
    selector = policy.spec.namespace_selector
    return None if selector is None else _selects(selector.requirements, _LABELS)


def _selects(requirements: LabelSelector, labels: Cel) -> Cel:
    """Return whether `labels` meet all requirements."""
    return all_of(_requires(each.key, each.operator, each.values, labels) for each in requirements)


def _requires(key: str, operator: str, values: tuple[str, ...], labels: Cel) -> Cel:
    is_present = f"{text(key)} in {labels}"
    if operator in ("Exists", "DoesNotExist"):
        return f"({is_present})" if operator == "Exists" else f"!({is_present})"
    is_value = f"({is_present} && {labels}[{text(key)}] in {texts(values)})"
    return is_value if operator == "In" else f"!{is_value}"


def _may_both_select(policy: Policy, other: Policy) -> bool:
    """Return false if no namespace has labels that both policies select: one label cannot have two values."""
    one, two = policy.spec.namespace_selector, other.spec.namespace_selector
    if two is None:
        return False
    for each in one.requirements if one is not None else ():
        same = [wanted for wanted in two.requirements if wanted.key == each.key]
        if each.operator == "In" and any(
            not any(label_matches(wanted.operator, wanted.values, value) for value in each.values) for wanted in same
        ):
            return False
    return True


