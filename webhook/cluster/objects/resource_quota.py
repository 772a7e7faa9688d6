"""ResourceQuotas that limit pods with pod affinity across namespaces."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.kube.pod.amounts import read_amounts
from webhook.kube.reader import Reader

CROSS_NAMESPACE_SCOPE = "CrossNamespacePodAffinity"
_POD_COUNTS = ("pods", "count/pods")


class ResourceQuota(NamedTuple):
    """A ResourceQuota. `denies_cross_namespace`: it denies each new pod with pod affinity across namespaces.

    A quota with a further scope counts as one that does not: the webhook does not evaluate the other scopes.
    """

    namespace: str
    name: str
    denies_cross_namespace: bool

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "ResourceQuota":
        """Return the facts of `content`, a raw API object. The API server, too, compares the amounts of the status.

        Raises:
            InvalidInput: a field that is read is malformed; holds every error.

        Source: k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go, CheckRequest
        """
        reader = Reader()
        metadata = reader.object(content.get("metadata"), "metadata")
        status = reader.object(content.get("status"), "status")
        scopes = _scopes(reader, reader.object(content.get("spec"), "spec"))
        denies = False
        if scopes == {CROSS_NAMESPACE_SCOPE}:
            hard = read_amounts(reader, status.get("hard"), "status.hard")
            used = read_amounts(reader, status.get("used"), "status.used")
            denies = any(each in hard and each in used and used[each] >= hard[each] for each in _POD_COUNTS)
        facts = cls(
            reader.text(metadata.get("namespace"), "metadata.namespace"),
            reader.text(metadata.get("name"), "metadata.name"),
            denies,
        )
        reader.finish()
        return facts


def _scopes(reader: Reader, spec: Mapping[str, Any]) -> set[str]:
    selector = reader.object(spec.get("scopeSelector"), "spec.scopeSelector")
    path = "spec.scopeSelector.matchExpressions"
    requirements = reader.objects(selector.get("matchExpressions"), path)
    return {
        *reader.texts(spec.get("scopes"), "spec.scopes"),
        *(reader.text(each.get("scopeName"), f"{where}.scopeName") for where, each in requirements),
    }
