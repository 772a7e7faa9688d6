"""Report what could not be read, so that a diagnosis without faults is not mistaken for a complete one."""

from collections.abc import Iterator

from webhook.doctor.check import check
from webhook.doctor.finding import Fault, warning
from webhook.doctor.installation import Installation


@check(
    "readable",
    "A part of the cluster cannot be read, so the checks that need it find nothing",
    "grant the rights of [Rights](#rights)",
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each source that could not be read."""
    # They are in the order in which they were read.
    for source, reason in sorted(installation.refusals.items(), key=lambda item: item[0].title.casefold()):
        remedy = (
            f"grant the right: {source.rights}" if source.rights != "none" else "run doctor where it can be reached"
        )
        yield warning(source.title, f"not read: {reason}", f"{remedy}; --list prints the checks that need it")
