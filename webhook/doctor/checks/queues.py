"""The queues that the policy names exist."""

from collections.abc import Iterator

from webhook.doctor.check import check
from webhook.doctor.finding import Fault, warning
from webhook.doctor.installation import Installation
from webhook.doctor.source import Source
from webhook.doctor.spelling import meant
from webhook.kube.documents import field


@check(
    "queues",
    "A queue that the policy names in `namespaceLimits` does not exist",
    "create the queue, or correct `namespaceLimits.queues`",
    Source.QUEUES,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each name of a queue, not a pattern, that no Queue or LocalQueue has."""
    if not installation.knows(Source.QUEUES):
        return
    known = {str(field(each, "metadata", "name")) for each in installation.of(Source.QUEUES)}
    places = (
        (f"{installation.place_of(policy)}: spec.namespaceLimits[{index}].queues", limits.queues or ())
        for policy in installation.policies
        for index, limits in enumerate(policy.spec.namespace_limits)
    )
    for where, queues in places:
        for queue in queues:
            if "*" in queue or queue in known:
                continue
            similar = meant(queue, known)
            hint = f"did you mean {similar}?" if similar else "create it, or correct the policy"
            what = f"{queue}: no Queue or LocalQueue has this name"
            yield warning(where, what, hint)
