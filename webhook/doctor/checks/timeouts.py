"""The timeouts of all webhooks for a pod fit into a request."""

from collections.abc import Iterator

from webhook.doctor import commands
from webhook.doctor.check import check
from webhook.doctor.finding import Fault, named, warning
from webhook.doctor.installation import Installation, name_of, webhooks_of
from webhook.doctor.matching import DEFAULT_TIMEOUT_SECONDS, is_called_for_pods, namespaces_of, timeout_seconds
from webhook.doctor.source import Source
from webhook.kube.label_selector import selector_matches

# Source: k8s.io/apiserver/pkg/server/config.go, RequestTimeout; the flag --request-timeout
_REQUEST_SECONDS = 60
_SHIPPED_SECONDS = 5


@check(
    "timeouts",
    "The timeout of the webhook is long, or those of all webhooks for a pod add up to a request's",
    "lower `timeoutSeconds`: the webhook answers in milliseconds; deploy/base has 5",
    Source.CONFIGURATIONS,
    Source.NAMESPACES,
)
def find(installation: Installation) -> Iterator[Fault]:
    """Yield a fault for a long timeout, and for webhooks that can together exceed the time of a request.

    API servers call mutating webhooks one after the other. The sum is that of the namespace with the most.
    """
    timeouts = enumerate(map(timeout_seconds, installation.webhooks))
    long = {index: seconds for index, seconds in timeouts if seconds > DEFAULT_TIMEOUT_SECONDS}
    command = commands.patched(installation, {f"/webhooks/{each}/timeoutSeconds": _SHIPPED_SECONDS for each in long})
    for index, seconds in long.items():
        where = f"{installation.place}: webhooks[{index}].timeoutSeconds"
        yield warning(where, f"{seconds} s: a webhook that hangs delays each request by this", command)
    called = [
        (name_of(configuration), namespaces_of(webhook), timeout_seconds(webhook))
        for configuration in installation.of(Source.CONFIGURATIONS)
        for webhook in webhooks_of(configuration)
        if is_called_for_pods(webhook)
    ]
    worst, names = 0, list[str]()
    for namespace in dict.fromkeys(("default", *(name_of(each) for each in installation.of(Source.NAMESPACES)))):
        labels = installation.namespace_labels(namespace)
        selecting = [(name, seconds) for name, selector, seconds in called if selector_matches(selector, labels)]
        total = sum(seconds for _, seconds in selecting)
        if total > worst:
            worst, names = total, [name for name, _ in selecting]
    if installation.configuration is not None and worst >= _REQUEST_SECONDS:
        what = f"their timeouts add up to {worst} s, and a request ends after {_REQUEST_SECONDS} s"
        shown = named(dict.fromkeys(names))
        yield warning(f"MutatingWebhookConfigurations {shown}", what, "lower timeoutSeconds of the longest ones")
