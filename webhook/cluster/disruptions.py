"""Read what limits the moves of pods from a cluster file: their controllers, and the PodDisruptionBudgets."""

from collections.abc import Iterable
from dataclasses import dataclass

from webhook.cluster.disruption_budget import (
    DISRUPTION_BUDGET_API_VERSION,
    DISRUPTION_BUDGET_KIND,
    Budgets,
    DisruptionBudget,
)
from webhook.cluster.file import occupies_node, read_document
from webhook.cluster.pods.bound_pods import BoundPod, BoundPods
from webhook.documents.documents import Document
from webhook.documents.field import FieldError, InvalidInput


@dataclass(frozen=True, slots=True)
class Disruptions:
    """The bound pods of a cluster, and its PodDisruptionBudgets, or None if they are not known."""

    bound: BoundPods
    budgets: Budgets | None

    @classmethod
    def from_documents(cls, documents: Iterable[Document]) -> "Disruptions":
        """Return the facts of the pods and PodDisruptionBudgets (policy/v1) among `documents`.

        Without a budget, and without an empty list of budgets, the budgets are not known.

        Raises:
            InvalidInput: an object is malformed; holds every error, with the place and the name of the object.
        """
        errors: list[FieldError] = []
        bound: dict[str, list[BoundPod]] = {}
        budgets: dict[str, list[DisruptionBudget]] = {}
        knows_budgets = False
        for document in documents:
            kind, version = str(document.content.get("kind")), document.content.get("apiVersion")
            if (version, kind) == ("v1", "Pod") and occupies_node(document.content):
                if pod := read_document(document, BoundPod.of, errors):
                    bound.setdefault(pod.node, []).append(pod)
            elif version == DISRUPTION_BUDGET_API_VERSION and kind.removesuffix("List") == DISRUPTION_BUDGET_KIND:
                knows_budgets = True
                if not kind.endswith("List") and (budget := read_document(document, DisruptionBudget.of, errors)):
                    budgets.setdefault(budget.namespace, []).append(budget)
        if errors:
            raise InvalidInput(errors)
        return cls(bound, budgets if knows_budgets else None)
