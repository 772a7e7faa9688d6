"""The policy in force is the one of the ConfigMap and the one that is given."""

from collections.abc import Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, info, warning
from webhook.doctor.installation import Installation
from webhook.doctor.source import Source
from webhook.policy.policy_set import PolicySet, set_of


@check(
    "policy",
    "The policy in force is not the one of the ConfigMap or of `--policy`, or the ConfigMap has no valid policy",
    "`placement-webhook policy check FILE`; apply the ConfigMap, and look at the log of the server",
    Source.DEPLOYMENTS,
    Source.POLICY,
    Source.TRIAL,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault if the ConfigMap, the mark on the dry-run pod and the given policy differ."""
    stored, given = installation.stored, installation.given
    where = f"ConfigMap {installation.target.namespace}/{stored.name}" if stored is not None else ""
    if stored is not None and stored.policy is None:
        what = f"holds no valid policy, so the last valid one stays in force: {'; '.join(stored.errors[:3])}"
        yield error(where, what, "`placement-webhook policy check FILE` has all errors")
    is_known = given is not None or stored is not None or installation.policy in installation.accepted
    in_shadow = [each for each in installation.policies if each.spec.mode == "shadow"]
    for each in in_shadow:
        where_in_shadow = f"{installation.place_of(each)}: spec.mode"
        yield info(where_in_shadow, "shadow: no pod is changed or denied", "set mode: enforce when it is to be")
    if (
        not in_shadow
        and not is_known
        and installation.configuration
        and _mark(installation) != installation.policy.identity
    ):
        what = "not found in a workload, so all checks judge by the built-in policy"
        yield info("the policy in force", what, "give the policy of the server with --policy")
    held = stored.policies if stored is not None else None
    # A PlacementPolicy object comes before the ConfigMap.
    trial = installation.trial
    is_from_object = trial is not None and installation.policy_of(trial.namespace) in installation.accepted
    in_force = "" if is_from_object else _mark(installation)
    meant = _of_trial(held, installation)
    if in_force and meant and in_force != meant:
        what = f"holds {meant}, but a replica that answered has {in_force}: it has not read it, or rejected it"
        read = commands.servers(installation, "logs")
        yield warning(
            where, what, f"{read} has the reason, {commands.servers(installation, 'rollout', 'restart')} reads it"
        )
    if given is not None:
        known = in_force if held is None else _identities(held)
        wanted = _of_trial(set_of(given), installation) if held is None else _identities(set_of(given))
        if known and known != wanted:
            what = f"the cluster has {known}, and the given file is {wanted}"
            yield warning(where or installation.place, what, "apply the file, or give doctor the one that is in force")


def _of_trial(policies: PolicySet | None, installation: Installation) -> str:
    """Return the identity of the policy for the dry-run pod, or of the default one without such a pod."""
    if policies is None:
        return ""
    if installation.trial is None:
        return policies.default.identity
    namespace = installation.trial.namespace
    return policies.of_namespace(namespace, installation.known_labels(namespace)).identity


def _identities(policies: PolicySet) -> str:
    return ", ".join(each.identity for each in policies)


def _mark(installation: Installation) -> str:
    return installation.mark_on(installation.trial.pod) if installation.trial is not None else ""
