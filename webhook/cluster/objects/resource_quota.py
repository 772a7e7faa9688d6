"""ResourceQuotas that limit pods with pod affinity across namespaces."""

from typing import NamedTuple

from webhook.kube.pod.amounts import read_amounts
from webhook.kube.reader import Reader, reading

CROSS_NAMESPACE_SCOPE = "CrossNamespacePodAffinity"
_POD_COUNTS = ("pods", "count/pods")


class ResourceQuota(NamedTuple):
    """A ResourceQuota. `denies_cross_namespace` is true if it denies each new pod with pod affinity across namespaces.

    This is false for a quota with a further scope, because the webhook does not evaluate other scopes.
    """

    namespace: str
    name: str
    denies_cross_namespace: bool

    @classmethod
    @reading
    def of(cls, quota: Reader) -> "ResourceQuota":
        """Read a ResourceQuota. The amounts are those of its status, which the API server also compares.

        Source: k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go, CheckRequest
        """
        metadata, spec, status = quota.object("metadata"), quota.object("spec"), quota.object("status")
        requirements = spec.object("scopeSelector").objects("matchExpressions")
        denies = False
        if {*spec.texts("scopes"), *(each.text("scopeName") for each in requirements)} == {CROSS_NAMESPACE_SCOPE}:
            hard, used = read_amounts(status, "hard"), read_amounts(status, "used")
            denies = any(each in hard and each in used and used[each] >= hard[each] for each in _POD_COUNTS)
        return cls(metadata.text("namespace"), metadata.text("name"), denies)
