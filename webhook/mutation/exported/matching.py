"""The pods that an exported policy applies to, by rule, selector and match condition, as for the webhook."""

from typing import Any

from webhook.kube.names import DAEMON_SET, MIRROR_POD_ANNOTATION, NAMESPACE_NAME_LABEL
from webhook.kube.selectors import LabelRequirement, LabelSelector, label_matches
from webhook.mutation.exported.cel import Cel, all_of, any_of, choose, matches_any, negated, stripped, text, texts
from webhook.mutation.exported.variables import DEFAULTS, NAMESPACE, OWN
from webhook.policy.policy import Policy, opt_out_namespaces
from webhook.policy.spec.admission import Exemption

_SERVICE_ACCOUNT = "system:serviceaccount:"
_OWN: Cel = "object.metadata.annotations"
_OPPOSITES = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}
_LABELS: Cel = "namespaceObject.metadata.?labels.orValue({})"


def constraints(policy: Policy, before: tuple[Policy, ...], excluded: tuple[str, ...]) -> dict[str, Any]:
    """Return the matchConstraints: pods that are created in the namespaces of `policy`, but not in those `excluded`.

    The policies in `before` take precedence. Only those whose selector has a single requirement are excluded here,
    because a selector cannot negate a conjunction; `in_force` excludes the others.
    """
    requirements = [LabelRequirement(NAMESPACE_NAME_LABEL, "NotIn", excluded)]
    requirements += _requirements(policy)
    alone = [found[0] for each in _competing(policy, before) if len(found := _requirements(each)) == 1]
    requirements += [each._replace(operator=_OPPOSITES[each.operator]) for each in alone]
    expressions = [
        {"key": each.key, "operator": each.operator, **({"values": list(each.values)} if each.values else {})}
        for each in dict.fromkeys(requirements)
    ]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    return {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": expressions},
        "objectSelector": {},
        "resourceRules": [{**rule, "scope": "Namespaced"}],
    }


def _requirements(policy: Policy) -> LabelSelector:
    selector = policy.spec.namespace_selector
    return selector.requirements if selector is not None else ()


def _competing(policy: Policy, before: tuple[Policy, ...]) -> list[Policy]:
    """Return the policies in `before` that can select a namespace that `policy` also selects."""
    return [each for each in before if each.spec.namespace_selector is not None and _may_both_select(policy, each)]


def condition(policy: Policy) -> Cel:
    """Return whether `policy` may apply to the pod.

    The namespace is not evaluated, because match conditions have no access to it.

    It is a single expression, so that only its first part is evaluated for a pod without annotations.
    """
    conditions = [_may_have_type(policy), 'object.spec.?nodeName.orValue("") == ""']
    conditions.append(f"!(has({_OWN}) && {text(MIRROR_POD_ANNOTATION)} in {_OWN})")
    kind = f"o.kind == {text(DAEMON_SET)}"
    conditions.append(f"!object.metadata.?ownerReferences.orValue([]).exists(o, {kind})")
    conditions += [negated(_is_exempt(each)) for each in policy.spec.exemptions]
    return all_of(conditions)


def _may_have_type(policy: Policy) -> Cel:
    """Return whether the pod names a type, or may get the type of its namespace or the required type."""
    if policy.spec.without_accelerator.namespace_defaults != "leave":
        return "true"
    own = f"(has({_OWN}) && {text(policy.keys.workload_type)} in {_OWN})"
    requests = 'has(c.resources) && has(c.resources.requests) && c.resources.requests.exists(n, n.contains("/"))'
    of_containers = f"object.spec.containers.exists(c, {requests})"
    of_others = f"(has(object.spec.initContainers) && object.spec.initContainers.exists(c, {requests}))"
    return any_of((own, of_containers, of_others, "has(object.spec.resourceClaims)"))


def in_force(policy: Policy, before: tuple[Policy, ...]) -> Cel:
    """Return whether the policy applies to the namespace without limits on it, and the pod does not opt out."""
    selectors = (_requirements(each) for each in _competing(policy, before))
    several = [negated(_selects(each, _LABELS)) for each in selectors if len(each) != 1]
    limited = [pattern for each in policy.spec.namespace_limits for pattern in each.namespaces]
    return all_of((*several, negated(matches_any(NAMESPACE, limited)), negated(_opts_out(policy))))


def _opts_out(policy: Policy) -> Cel:
    key = text(policy.keys.inject)
    values = [(f"{key} in {at}", f'{stripped(f"{at}[{key}]")} == "disabled"') for at in (OWN, DEFAULTS)]
    value = choose(values, "false")
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


def _selects(requirements: LabelSelector, labels: Cel) -> Cel:
    return all_of(_requires(each.key, each.operator, each.values, labels) for each in requirements)


def _requires(key: str, operator: str, values: tuple[str, ...], labels: Cel) -> Cel:
    is_present = f"{text(key)} in {labels}"
    if operator in ("Exists", "DoesNotExist"):
        return f"({is_present})" if operator == "Exists" else f"!({is_present})"
    is_value = f"({is_present} && {labels}[{text(key)}] in {texts(values)})"
    return is_value if operator == "In" else f"!{is_value}"


def _may_both_select(policy: Policy, other: Policy) -> bool:
    """Return false if no namespace can match both policies, because a label cannot have two values."""
    for each in _requirements(policy):
        same = [wanted for wanted in _requirements(other) if wanted.key == each.key]
        if each.operator == "In" and any(
            not any(label_matches(wanted.operator, wanted.values, value) for value in each.values) for wanted in same
        ):
            return False
    return True
