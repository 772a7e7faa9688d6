"""The API server has a release that the webhook supports."""

from collections.abc import Iterator

from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, info
from webhook.doctor.installation import Installation
from webhook.doctor.source import Source

# The release in which matchConditions are stable. Source: k8s.io/apiserver, AdmissionWebhookMatchConditions
_OLDEST_SUPPORTED = 30


@check(
    "release",
    "The API server is older than 1.30, which ignores matchConditions, or its release is not modelled",
    "upgrade the cluster, or the webhook",
    Source.VERSION,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for an old release, and a note for one whose scheduler is predicted by another release's rules."""
    release = installation.release
    if release is None:
        return
    if release.minor < _OLDEST_SUPPORTED:
        what = (
            f"{release.version}: matchConditions are not stable before 1.{_OLDEST_SUPPORTED}, so all pods may be sent"
        )
        yield error("the API server", what, "upgrade the cluster")
    elif release.note and "that is modelled" in release.note:
        yield info("the API server", release.note, "predictions can differ in what changed between the releases")
