"""The pods that the API server sends to a webhook, by the selectors and matchConditions of its registration. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from certs.registration import Target, manifest
from certs.webhook_rules import PODS
from webhook.documents.documents import field
from webhook.documents.field import InvalidInput
from webhook.kube.cel.expression import compiled
from webhook.kube.names import NAMESPACE_NAME_LABEL
from webhook.kube.reader import Reader
from webhook.kube.selectors import LabelRequirement, LabelSelector, read_label_selector, selector_matches

JsonObject = Mapping[str, Any]

_SYSTEM_NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True)
class Selection:
    """The pods that the API server sends to a webhook: selectors, and (name, expression) of matchConditions."""

    namespaces: LabelSelector
    pods: LabelSelector = ()
    conditions: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, webhook: JsonObject) -> "Selection":
        """Return the selection of `webhook`, the entry for pods of a MutatingWebhookConfiguration.

        The matchConditions of the shipped manifest are not evaluated: the policy makes the same checks, and these
        conditions are false for a pod that is bound.

        Raises:
            InvalidInput: a selector or a condition is malformed.
        """
        reader = Reader(webhook)
        namespaces, pods = (read_label_selector(reader, name) or () for name in ("namespaceSelector", "objectSelector"))
        conditions = tuple(
            (str(each.get("name")), str(each.get("expression")))
            for each in (condition.raw for condition in reader.objects("matchConditions"))
            if each.get("expression") not in _shipped_conditions()
        )
        reader.finish()
        return cls(namespaces, pods, conditions)

    @classmethod
    def shipped(cls, own_namespace: str) -> "Selection":
        """Return the selection of `deploy/base`: all pods but those of kube-system, webhook and certs controller."""
        values = (_SYSTEM_NAMESPACE, own_namespace, f"{own_namespace}-certs")
        return cls((LabelRequirement(NAMESPACE_NAME_LABEL, "NotIn", values),))

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether pods of a namespace with these labels are sent."""
        return selector_matches(self.namespaces, {NAMESPACE_NAME_LABEL: namespace, **labels})

    def selects(self, pod: JsonObject) -> bool:
        """Return whether the objectSelector selects `pod`."""
        labels = field(pod, "metadata", "labels") if self.pods else None
        return selector_matches(self.pods, labels if isinstance(labels, dict) else {})

    def meets_conditions(self, pod: JsonObject) -> bool:
        """Return whether `pod` meets the matchConditions. A condition that cannot be evaluated counts as true.

        Source: k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go
        """
        return all(holds is not False for _, holds in self._evaluated(pod))

    def undecided(self, pod: JsonObject) -> tuple[str, ...]:
        """Return the names of the conditions that cannot be evaluated for `pod`."""
        return tuple(name for name, holds in self._evaluated(pod) if holds is None)

    def _evaluated(self, pod: JsonObject) -> Iterator[tuple[str, bool | None]]:
        variables = {"object": pod, "oldObject": None, "request": {"operation": "CREATE", "dryRun": False}}
        return ((name, compiled(expression).holds(variables)) for name, expression in self.conditions)


def selection_of_configuration(configuration: JsonObject) -> Selection | None:
    """Return the selection of the webhook for pods in a MutatingWebhookConfiguration, or None without such a webhook.

    Raises:
        InvalidInput: a selector or a condition is malformed.
    """
    webhook = webhook_for_pods(configuration)
    try:
        return None if webhook is None else Selection.of(webhook)
    except InvalidInput as error:
        place = f"MutatingWebhookConfiguration {field(configuration, 'metadata', 'name')}"
        raise InvalidInput(each.prefixed(place) for each in error.errors) from error


def webhook_for_pods(configuration: JsonObject) -> JsonObject | None:
    """Return the webhook for pods in a MutatingWebhookConfiguration, or None if there is no such webhook."""
    webhooks = configuration.get("webhooks")
    found = webhooks if isinstance(webhooks, list) else []
    return next((each for each in found if isinstance(each, dict) and each.get("name") == PODS), None)


@cache
def _shipped_conditions() -> tuple[str, ...]:
    webhook = next(each for each in manifest(Target())["webhooks"] if each["name"] == PODS)
    return tuple(each["expression"] for each in webhook["matchConditions"])
