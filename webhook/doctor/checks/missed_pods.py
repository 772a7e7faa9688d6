"""No pod was created while the webhook was away."""

from collections.abc import Iterator

from webhook.doctor.check import check
from webhook.doctor.finding import Fault, named, warning
from webhook.doctor.installation import Installation
from webhook.doctor.source import Source


@check(
    "missed-pods",
    "Pods that the policy concerns were created without injection",
    "`kubectl rollout restart` of their owners creates them again",
    Source.CONFIGURATIONS,
    Source.NAMESPACES,
    Source.PODS,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault with the first missed pods and the number of the others."""
    if not installation.missed_count:
        return
    pods = [f"{each.namespace}/{each.name}" for each in installation.missed]
    more = installation.missed_count - len(pods)
    shown = named(pods, len(pods)) + (f" and {more} more" if more else "")
    remedies = dict.fromkeys(_shown(each.remedy) for each in installation.missed)
    noun = "pod was" if installation.missed_count == 1 else "pods were"
    yield warning(
        f"Pods {shown}",
        f"{installation.missed_count} {noun} created without injection: while no server answered and failurePolicy "
        "was Ignore, before the webhook was installed or the policy enforced for them, or by an exempt user",
        "; ".join(list(remedies)[:3]) + "; `placement-webhook missed` has all of them",
    )


def _shown(remedy: str) -> str:
    return f"`{remedy}`" if remedy.startswith("kubectl ") else remedy
