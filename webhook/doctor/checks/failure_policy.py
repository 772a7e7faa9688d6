"""The number of servers fits failurePolicy."""

from collections.abc import Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, warning
from webhook.doctor.installation import Installation, name_of, texts
from webhook.doctor.source import Source
from webhook.kube.documents import field
from webhook.kube.label_selector import read_label_selector, selector_matches
from webhook.kube.reader import Reader


@check(
    "failure-policy",
    "There are too few servers for failurePolicy, or no PodDisruptionBudget keeps one of them",
    "two replicas on different nodes and a PodDisruptionBudget, as in deploy/base",
    Source.CONFIGURATIONS,
    Source.DEPLOYMENTS,
    Source.BUDGETS,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault if one node or one roll-out can leave no server."""
    own, deployment = installation.pods_webhook, installation.deployment
    if own is None or deployment is None:
        return
    fails = own[1].get("failurePolicy", "Fail") == "Fail"
    effect = "pods of all namespaces are refused" if fails else "pods are created without injection"
    where = f"{installation.deployment_kind} {name_of(deployment)}"
    wanted = field(deployment, "spec", "replicas")
    ready = field(deployment, "status", "readyReplicas") or 0
    fault = error if fails else warning
    if wanted in (0, 1):
        command = commands.servers(installation, "scale", "--replicas=2")
        yield fault(f"{where}: spec.replicas", f"{wanted}: while the server is away, {effect}", command)
    elif ready == 0:
        yield error(f"{where}: status.readyReplicas", f"no replica is ready: {effect}", _look(installation))
    elif ready < (wanted or 1):
        yield warning(f"{where}: status.readyReplicas", f"{ready} of {wanted} replicas are ready", _look(installation))
    if installation.knows(Source.BUDGETS) and fails and not _has_budget(installation):
        what = f"no PodDisruptionBudget selects its pods: a drain can evict all of them, and {effect}"
        yield warning(where, what, _with_budget(installation))


def _with_budget(installation: Installation) -> str:
    if commands.release_of(installation) is not None:
        return f"{commands.upgraded(installation, '--set=podDisruptionBudget.enabled=true')} makes one"
    return f"{commands.kubectl(installation, 'apply', '-f', 'deploy/base/poddisruptionbudget.yaml')} makes one"


def _look(installation: Installation) -> str:
    return f"{commands.servers(installation, 'describe')} and {commands.servers(installation, 'logs')} have the reason"


def _has_budget(installation: Installation) -> bool:
    labels = texts(installation.deployment or {}, "spec", "template", "metadata", "labels")
    for each in installation.of(Source.BUDGETS):
        selector = read_label_selector(Reader(), field(each, "spec", "selector"), "spec.selector")
        if selector_matches(selector, labels):
            return True
    return False
