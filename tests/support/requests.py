"""What two requests are compared by."""

from typing import Any

from webhook.kube.api.admission import AdmissionRequest

_FACTS = (
    *("uid", "operation", "kind", "resource", "subresource", "namespace", "name", "user", "dry_run", "object", "group"),
    *("old_object", "groups"),
)


def facts_of(request: AdmissionRequest) -> dict[str, Any]:
    """Return all that is read of `request`, by the name of the field."""
    return {name: getattr(request, name) for name in _FACTS}
