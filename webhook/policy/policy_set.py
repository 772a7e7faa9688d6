"""Several policies, of which one is in force for each namespace."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from webhook.kube.names import NAMESPACE_NAME_LABEL
from webhook.kube.selectors import selector_matches
from webhook.policy.policy import Policy, Withheld
from webhook.policy.spec.document import PolicySpec

_UNKNOWN = "the labels of the namespace, which choose its policy, are not known yet"
DEFAULT_NAME = "default"
"""The name of the policy for all other namespaces among the objects of a cluster."""


@dataclass(frozen=True, slots=True)
class PolicySet:
    """A default policy, and other policies that are in force for the namespaces that they select.

    `others` are in the order of evaluation: by descending priority, then by name.
    """

    default: Policy
    others: tuple[Policy, ...] = ()

    @classmethod
    def of(cls, default: Policy, others: Iterable[Policy]) -> "PolicySet":
        """Return the set of these policies."""
        return cls(default, tuple(sorted(others, key=lambda each: (-each.spec.priority, each.name))))

    def __iter__(self) -> Iterator[Policy]:
        return iter((self.default, *self.others))

    @property
    def spec(self) -> PolicySpec:
        """The settings of the default policy, which apply to the server as a whole."""
        return self.default.spec

    @property
    def selects_by_labels(self) -> bool:
        """Return whether a policy selects namespaces by labels other than the name."""
        selectors = (each.spec.namespace_selector for each in self.others)
        return any(selector is not None and not selector.keys <= {NAMESPACE_NAME_LABEL} for selector in selectors)

    def of_namespace(self, name: str, labels: Mapping[str, str] | None) -> Policy:
        """Return the policy in force for the namespace `name` with `labels`.

        If the labels are not known (None), only selectors by the name of the namespace are evaluated, because a
        selector that excludes a label would match every namespace. If another selector could match, `unknownNamespace`
        of the default policy decides.
        """
        known = {NAMESPACE_NAME_LABEL: name, **(labels or {})}
        for each in self.others:
            selector = each.spec.namespace_selector
            if selector is None or (labels is None and not selector.keys <= {NAMESPACE_NAME_LABEL}):
                continue
            if selector_matches(selector.requirements, known):
                return each
        handling = self.default.spec.unknown_namespace
        if labels is not None or handling == "default" or not self.selects_by_labels:
            return self.default
        return self.default.withheld_as(Withheld(handling, _UNKNOWN))

    def with_objects(self, objects: Iterable[Policy]) -> "PolicySet":
        """Return these policies with those of objects instead, by name; `default` is the default policy."""
        by_name = {each.name: each for each in objects}
        default = by_name.pop(DEFAULT_NAME, self.default)
        return PolicySet.of(default, ({each.name: each for each in self.others} | by_name).values())

    def with_name_of_default(self) -> Policy | None:
        """Return the other policy, of an object, with the name of the default policy, or None."""
        return next((each for each in self.others if each.name == self.default.name), None)

    def by_name(self) -> dict[str, Policy]:
        """Return the policies by name, the default one first, as `NAME (default)` if another has its name."""
        name = self.default.name
        key = f"{name} (default)" if self.with_name_of_default() else name
        return {key: self.default} | {each.name: each for each in self.others}

    def conflicts(self) -> dict[str, str]:
        """Return a warning by name for each policy that an earlier one with the same priority and selector replaces."""
        first: dict[tuple[int, str], Policy] = {}
        found = {}
        for each in self.others:
            key = (each.spec.priority, str(each.spec.namespace_selector))
            if key in first:
                found[each.name] = (
                    f"{each.name}: {first[key].name} has the same priority and namespaceSelector and comes first by "
                    "name, so this policy is never in force; give one of them another priority"
                )
            first.setdefault(key, each)
        return found


PolicyOrSet = Policy | PolicySet


def set_of(policies: PolicyOrSet) -> PolicySet:
    """Return `policies` if it is a set, or the set of a single policy."""
    return policies if isinstance(policies, PolicySet) else PolicySet(policies)


def may_be_in_shadow(policies: PolicyOrSet) -> bool:
    """Return whether a policy is in shadow mode."""
    return any(each.spec.mode == "shadow" for each in set_of(policies))


def is_all_in_shadow(policies: PolicyOrSet) -> bool:
    """Return whether every policy is in shadow mode."""
    return all(each.spec.mode == "shadow" for each in set_of(policies))
