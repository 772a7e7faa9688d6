"""Requests and pods that the policy leaves alone."""

from pydantic import model_validator

from webhook.policy.fields import (
    NamespacePattern,
    ServiceAccountPattern,
    SomeValues,
    StrictModel,
    Text,
    UserPattern,
    wrong,
)
from webhook.policy.label_selector import LabelSelector


class PodLabels(LabelSelector):
    """A LabelSelector for pods. All of its requirements must hold."""

    @model_validator(mode="after")
    def _selects_something(self) -> "PodLabels":
        if not self.match_labels and not self.match_expressions:
            raise wrong("must have matchLabels or matchExpressions: an empty selector would exempt every pod")
        return self


class Exemption(StrictModel):
    """Requests that the policy leaves alone: they are allowed unchanged (outcome Bypassed), with the reason on record.

    Every field that is set must match, and one value of each list is enough. `users`, `groups` and `serviceAccounts`
    are those of the request. The pods of a Deployment or Job are created by a controller of Kubernetes, so they are not
    exempted by the user who created that object: exempt them by `namespaces` or `podLabels`.
    """

    users: SomeValues[UserPattern] | None = None
    """The users, each a name or a pattern with `*`, such as `system:serviceaccount:ci:*`."""

    groups: SomeValues[UserPattern] | None = None
    """The groups of the user, each a name or a pattern with `*`."""

    service_accounts: SomeValues[ServiceAccountPattern] | None = None
    """The service accounts that create the object, each `NAMESPACE:NAME` or a pattern with `*`, such as `ci:*`; with or
    without `system:serviceaccount:` in front."""

    namespaces: SomeValues[NamespacePattern] | None = None
    """The namespaces of the object, each a name or a pattern with `*`."""

    pod_labels: PodLabels | None = None
    """The labels of the pod. An entry with this field holds for pods, and for the pod templates of workload objects
    unless it names users, groups or service accounts, too."""

    reason: Text
    """The reason, for the audit record: at most 256 characters."""

    @model_validator(mode="after")
    def _names_something(self) -> "Exemption":
        if not self.concerns_users and self.namespaces is None and self.pod_labels is None:
            raise wrong("must have users, groups, serviceAccounts, namespaces or podLabels")
        return self

    @property
    def concerns_users(self) -> bool:
        """Return whether the entry depends on who sends the request."""
        return self.users is not None or self.groups is not None or self.service_accounts is not None
