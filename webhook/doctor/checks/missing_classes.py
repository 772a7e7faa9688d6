"""The PriorityClasses that the policy names exist."""

from collections.abc import Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, warning
from webhook.doctor.installation import Installation, JsonObject, name_of
from webhook.doctor.source import Source
from webhook.policy.document import PolicySpec


@check(
    "priority-classes",
    "A PriorityClass that the policy names does not exist, or the cluster's default class hides it",
    "`kubectl create priorityclass NAME --value N`, or change the policy",
    Source.PRIORITY_CLASSES,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each missing class: the API server refuses every pod of the type."""
    if not installation.knows(Source.PRIORITY_CLASSES):
        return
    for policy in installation.policies:
        yield from _missing(policy.spec, installation.place_of(policy), installation.of(Source.PRIORITY_CLASSES))


def _missing(spec: PolicySpec, place: str, classes: tuple[JsonObject, ...]) -> Iterator[Fault]:
    names = {name_of(each) for each in classes}
    used = {name: each.priority_class_name for name, each in spec.workload_types.items() if each.priority_class_name}
    for name, wanted in used.items():
        if wanted not in names:
            what = f"{wanted} does not exist: the API server refuses every pod of {name}"
            created = commands.command("kubectl", "create", "priorityclass", wanted, "--value=N")
            remedy = f"{created}, or name another class"
            yield error(f"{place}: spec.workloadTypes.{name}.priorityClassName", what, remedy)
    default = next((name_of(each) for each in classes if each.get("globalDefault") is True), None)
    if spec.default_priority_class not in (None, default):
        what = f"{spec.default_priority_class}, but the cluster's default class is {default or 'not set'}"
        yield warning(f"{place}: spec.defaultPriorityClass", what, f"set it to {default}" if default else "remove it")
    elif default and used and spec.default_priority_class is None:
        what = f"not set, and every pod without a class gets {default}: no workload type sets its own"
        yield warning(f"{place}: spec.defaultPriorityClass", what, f"set it to {default}")
