"""The service account of the webhook has the rights of deploy/base/rbac.yaml."""

from collections import defaultdict
from collections.abc import Iterator

from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, named, warning
from webhook.doctor.installation import Installation
from webhook.doctor.source import Source


@check(
    "rights",
    "The service account of the webhook lacks a right of deploy/base/rbac.yaml",
    "`kubectl apply -f deploy/base/rbac.yaml`",
    Source.DEPLOYMENTS,
    Source.GROUPS,
    Source.RIGHTS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for the rights that are missing: an error if the server has no view of the cluster without them."""
    lacking: dict[tuple[bool, str], list[str]] = defaultdict(list)
    for each in installation.rights:
        if not each.is_held:
            resource = f"{each.resource}.{each.group}" if each.group else each.resource
            lacking[each.is_required, each.verb].append(resource)
    for (is_required, verb), resources in lacking.items():
        what = f"may not {verb} {named(resources)}"
        without = "without a view, every verdict is Unknown" if is_required else "decisions are less complete"
        fault = error if is_required else warning
        yield fault(f"ServiceAccount {installation.account}", f"{what}: {without}", "apply rbac.yaml of deploy/base")
