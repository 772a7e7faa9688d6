"""The service accounts of the webhook have the rights that the arguments of their pods need."""

from collections import defaultdict
from collections.abc import Iterator

from webhook.doctor.check import check
from webhook.doctor.commands import granted
from webhook.doctor.finding import Fault, error, named, warning
from webhook.doctor.installation import Installation, Right, Role
from webhook.doctor.source import Source


@check(
    "rights",
    "The service account of the servers or of the certs controller lacks a right of its manifest",
    "`kubectl apply -f deploy/base/rbac.yaml`; the finding names the file of an optional part",
    Source.DEPLOYMENTS,
    Source.GROUPS,
    Source.RIGHTS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for the rights that are missing: an error if the server has no view of the cluster without them."""
    lacking: dict[tuple[str, Role, bool, str], list[str]] = defaultdict(list)
    for each in installation.rights:
        if not each.is_held:
            lacking[each.account, each.role, each.is_required, each.verb].append(_resource(each))
    for (account, role, is_required, verb), resources in lacking.items():
        what = f"may not {verb} {named(resources)}: {role.effect if is_required else role.optional_effect}"
        if verb == "list" and "namespaces" in resources and installation.policies.selects_by_labels:
            what += "; a replica that starts stays unready, as policies select namespaces by their labels"
        fault = error if is_required and role is not Role.CERTS else warning
        yield fault(f"ServiceAccount {account}", what, granted(installation, role))


def _resource(right: Right) -> str:
    resource = f"{right.resource}.{right.group}" if right.group else right.resource
    return f"{resource} {right.name}" if right.name else resource
