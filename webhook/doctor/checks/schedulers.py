"""The schedulers that the policy names run."""

from collections.abc import Iterator

from webhook.backends.registry import api_groups_of
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, warning
from webhook.doctor.installation import Installation, JsonObject, listed, name_of
from webhook.doctor.source import Source
from webhook.kube.wellknown import DEFAULT_SCHEDULER
from webhook.policy.policy import Policy


@check(
    "schedulers",
    "Nothing shows that a scheduler runs that the policy names: no API group, Lease, Deployment or running pod",
    "install the scheduler, or change `schedulerName` and `allowedSchedulers`",
    Source.POLICY,
    Source.GROUPS,
    Source.LEASES,
    Source.PODS,
    Source.DEPLOYMENTS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each scheduler of the policy without a sign of it; none if Leases or pods are not known."""
    reported = {"", DEFAULT_SCHEDULER}
    for policy in installation.policies:
        for path, name in _named(policy):
            if name not in reported:
                reported.add(name)
                yield from _unseen(installation, f"{installation.place_of(policy)}: spec.{path}", name, policy)


def _named(policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield the schedulers that a policy names, with their fields."""
    spec = policy.spec
    fields = {f"workloadTypes.{name}.schedulerName": each.scheduler_name for name, each in spec.workload_types.items()}
    if "allowed_schedulers" in spec.model_fields_set:
        fields |= {f"allowedSchedulers[{index}]": name for index, name in enumerate(spec.allowed_schedulers)}
    return ((path, name) for path, name in fields.items() if name is not None)


def _unseen(installation: Installation, where: str, name: str, policy: Policy) -> Iterator[Fault]:
    evidence, groups = installation.evidence, api_groups_of(policy.spec.schedulers, name)
    if evidence is None or not installation.knows(Source.PODS):
        return
    if evidence.shows(name, groups) or name in installation.bound_schedulers or _is_deployed(installation, name):
        return
    signs = f"no API group {' or '.join(groups)}, Lease" if groups else "no Lease"
    what = f"{name}: no sign that it runs ({signs}, Deployment or running pod names it), so its pods stay Pending"
    hint = "" if groups else "; a new profile of kube-scheduler has its first sign with its first pod"
    yield warning(where, what, f"install it, or name a scheduler that runs{hint}")


def _is_deployed(installation: Installation, scheduler: str) -> bool:
    """Return whether a Deployment, one of its containers or an argument has the name."""
    return any(
        scheduler in text for each in installation.of(Source.DEPLOYMENTS) for text in (name_of(each), *_words(each))
    )


def _words(deployment: JsonObject) -> Iterator[str]:
    for container in listed(deployment, "spec", "template", "spec", "containers"):
        yield str(container.get("name", ""))
        for key in ("command", "args"):
            found = container.get(key)
            yield from map(str, found if isinstance(found, list) else ())
