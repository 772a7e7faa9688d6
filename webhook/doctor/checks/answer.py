"""The API server gets an answer of the webhook: a pod that is created on dry run is injected."""

import re
from collections.abc import Iterator

from webhook.doctor.check import check
from webhook.doctor.finding import Fault, error, info, warning
from webhook.doctor.installation import Installation, Trial
from webhook.doctor.matching import timeout_seconds
from webhook.doctor.source import Source

_FAILED = re.compile(r'failed calling webhook "(?P<name>[^"]+)": (?P<reason>.*)', re.DOTALL)
_DENIED = re.compile(r'admission webhook "(?P<name>[^"]+)" denied the request: (?P<reason>.*)', re.DOTALL)


@check(
    "answer",
    "A pod that is created on dry run is not injected, is denied, or takes long",
    "the reason is in the finding; if the API server gives none, in its log: `failed calling webhook`",
    Source.CONFIGURATIONS,
    Source.TRIAL,
    Source.NAMESPACES,
    Source.POLICY,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault if the dry-run creation shows that the webhook does not do its work."""
    trial, own = installation.trial, installation.pods_webhook
    if trial is None or own is None:
        return
    place, webhook = own
    if trial.pod is None:
        yield _refused(place, trial, {str(each.get("name")) for each in installation.webhooks})
        return
    is_injected = bool(installation.mark_on(trial.pod))
    if trial.not_enforced is not None and not is_injected:
        what = f"a dry-run pod cannot show whether API servers get an answer: {trial.not_enforced}"
        yield info(place, what, "`apiserver_admission_webhook_request_total` of API servers counts the calls")
    elif not is_injected:
        yield error(
            place,
            f"a dry-run pod of type {trial.workload_type} in namespace {trial.namespace} is created without injection: "
            "API servers get no answer and failurePolicy is Ignore, or they do not call the webhook",
            "the other findings may name the cause; the log of the API server has `failed calling webhook`",
        )
    limit = timeout_seconds(webhook) / 2
    if trial.seconds > limit:
        what = f"the dry-run creation of a pod takes {trial.seconds:.1f} s; all webhooks are in it"
        yield warning(place, what, "`apiserver_admission_webhook_admission_duration_seconds` has the time of each")


def _refused(place: str, trial: Trial, own: set[str]) -> Fault:
    """Return the fault of a dry-run pod that was refused: by the webhook, for want of it, or by something else."""
    failed, denied = _FAILED.search(trial.error), _DENIED.search(trial.error)
    if failed and failed["name"] in own:
        what = f"API servers cannot call it, and pods are refused (failurePolicy Fail): {failed['reason']}"
        return error(place, what, "the other findings may name the cause; check that the webhook runs")
    if denied and denied["name"] in own:
        what = f"the webhook denies the smallest pod of type {trial.workload_type}: {denied['reason']}"
        return warning(place, what, "check the policy, and the annotations of the namespace")
    where = f"namespace {trial.namespace}"
    remedy = "choose another namespace with --trial-namespace, or correct what refuses the pod"
    return warning(where, f"a dry-run pod is refused by something else: {trial.error}", remedy)
