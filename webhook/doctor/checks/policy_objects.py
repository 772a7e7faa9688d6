"""The PlacementPolicy objects that the servers follow are served, judged, valid and in force."""

from collections.abc import Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, warning
from webhook.doctor.installation import Installation, JsonObject, listed, name_of
from webhook.doctor.reduction import follows_objects
from webhook.doctor.source import Source
from webhook.kube.documents import field


@check(
    "policy-objects",
    "A PlacementPolicy object is rejected, not judged or never in force, or its CustomResourceDefinition is missing",
    "`kubectl get placementpolicies` shows them; `placement-webhook policy check FILE` has all errors",
    Source.DEPLOYMENTS,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for each object that has no effect, if servers follow objects."""
    if not follows_objects(installation.deployment or {}) or Source.POLICY in installation.refusals:
        return
    if installation.policy_objects is None:
        what = "is not served, but servers run with --policy-source=crd"
        applied = commands.command("kubectl", "apply", "-k", "deploy/crd")
        remedy = (
            f"{applied if commands.release_of(installation) is None else commands.upgraded(installation)} installs it"
        )
        yield error("CustomResourceDefinition placementpolicies.placement.maip.mxsf.io", what, remedy)
    for each in installation.policy_objects or ():
        yield from _faults(installation, f"PlacementPolicy {name_of(each)}", each)


def _faults(installation: Installation, where: str, content: JsonObject) -> Iterator[Fault]:
    generation = field(content, "metadata", "generation")
    conditions = {
        each.get("type"): each
        for each in listed(content, "status", "conditions")
        if each.get("observedGeneration") == generation
    }
    accepted, in_force = conditions.get("Accepted"), conditions.get("InForce")
    if accepted is None:
        what = f"no server has judged generation {generation}, so it is not in force"
        yield warning(f"{where}: status", what, f"{commands.servers(installation, 'logs')} has the reason")
    elif accepted.get("status") != "True":
        edited = commands.command("kubectl", "edit", "placementpolicy", name_of(content))
        what = f"rejected, so the generation before it stays in force, if there is one: {accepted.get('message')}"
        yield error(f"{where}: spec", what, f"{edited}; `placement-webhook policy check FILE` has all errors")
    elif in_force is not None and in_force.get("status") != "True":
        what = f"never in force: {in_force.get('message')}"
        yield warning(f"{where}: spec", what, commands.command("kubectl", "edit", "placementpolicy", name_of(content)))
