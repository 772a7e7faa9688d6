"""The limits on moving pods: their controllers, and the PodDisruptionBudgets."""

from collections.abc import Iterable
from dataclasses import dataclass

from webhook.cluster.cluster_file import occupies_node, read_document
from webhook.cluster.objects.disruption_budget import DISRUPTION_BUDGET_KIND, Budgets, budgets_by_namespace
from webhook.cluster.pods.bound_pods import BoundPod, BoundPods
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import FieldError, InvalidInput


@dataclass(frozen=True, slots=True)
class Disruptions:
    """The bound pods of a cluster, and its PodDisruptionBudgets, or None if they are not known."""

    bound: BoundPods
    budgets: Budgets | None

    @classmethod
    def of(cls, snapshot: Snapshot, documents: Iterable[Document]) -> "Disruptions":
        """Return the facts of the pods among `documents`, and the budgets of `snapshot`.

        Raises:
            InvalidInput: a pod is malformed; holds every error, with the place and the name of the pod.
        """
        errors: list[FieldError] = []
        bound: dict[str, list[BoundPod]] = {}
        for document in documents:
            of_kind = document.content.get("apiVersion"), document.content.get("kind")
            is_bound = of_kind == ("v1", "Pod") and occupies_node(document.content)
            if is_bound and (pod := read_document(document, BoundPod.of, errors)):
                bound.setdefault(pod.node, []).append(pod)
        if errors:
            raise InvalidInput(errors)
        are_known = not snapshot.left_out.has_any(DISRUPTION_BUDGET_KIND)
        return cls(bound, budgets_by_namespace(snapshot.disruption_budgets if are_known else None))
