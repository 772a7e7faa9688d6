"""Ask a cluster what no object states: rights, what the endpoints serve, and what becomes of a pod."""

import asyncio
from collections.abc import Iterable
from time import monotonic
from urllib.parse import quote

from certs.calling import call_webhooks
from webhook.doctor.endpoints import ready_addresses
from webhook.doctor.enforcement import NO_USER, User, named_in_the_canary, reason_not_enforced
from webhook.doctor.installation import Installation, JsonObject, Probe, Right, Trial, name_of
from webhook.doctor.matching import labels_selected_by, selects_namespace
from webhook.doctor.node_facts import nodes_of, offered_cards
from webhook.doctor.rights import access_review
from webhook.doctor.sample_pods import sample_pod, types_of
from webhook.doctor.source import Source
from webhook.kube.documents import field
from webhook.watch.api_errors import ApiServerError, UnreachableError
from webhook.watch.api_server import ApiServer

_AT_ONCE = 8
_MOST_ENDPOINTS = 3
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def ask_rights(server: ApiServer, rights: Iterable[Right]) -> tuple[Right, ...]:
    """Return the rights with whether their accounts have them.

    Raises:
        ApiServerError: a review was refused.
    """
    gate = asyncio.Semaphore(_AT_ONCE)

    async def asked(right: Right) -> Right:
        async with gate:
            review = await server.create(_REVIEWS, access_review(right, *right.account.split("/")), {})
        return right._replace(is_held=field(review, "status", "allowed") is True)

    return tuple(await asyncio.gather(*map(asked, rights)))


async def probe(installation: Installation, endpoint: str | None) -> tuple[Probe, ...]:
    """Return the TLS handshakes with `endpoint`; None: with the address that API servers call and ready endpoints.

    Each replica can have another certificate, so some of the endpoints are called one by one.

    Raises:
        InvalidInput: `endpoint` is not HOST:PORT.
    """
    configuration = installation.configuration
    if configuration is None:
        return ()
    addresses: list[str | None] = [endpoint]
    if endpoint is None and installation.is_called_by_service:
        ready = ready_addresses(installation.of(Source.ENDPOINTS))[:_MOST_ENDPOINTS]
        addresses += [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in ready]
    called = await asyncio.gather(*(asyncio.to_thread(call_webhooks, configuration, at) for at in addresses))
    return tuple(
        Probe(at or next((each.address for each in results if each), ""), tuple(results))
        for at, results in zip(addresses, called, strict=True)
    )


async def create_on_trial(
    server: ApiServer, installation: Installation, given: str | None, user: User = NO_USER
) -> Trial | None:
    """Return what becomes of a pod that `user` creates on dry run, in the namespace `given` or one that is sent.

    None: there is no such namespace, or nothing is installed.

    Raises:
        ApiServerError: the user may not create pods there, or the API server does not answer.
    """
    chosen = _trial_place(installation, given)
    if chosen is None or installation.configuration is None:
        return None
    namespace, workload_type = chosen
    policy = installation.policy_of(namespace)
    # The webhook can deny pods that no node could ever run.
    cards = offered_cards(policy, nodes_of(installation))
    resources = (*cards, *policy.spec.accelerators[0].resources)
    resource = next((each for each in resources if "*" not in each), None)
    pod = sample_pod(policy, workload_type, resource)
    pod = named_in_the_canary(policy, pod, namespace)
    pod["metadata"]["labels"] = labels_selected_by(installation.pods_webhook[1]) if installation.pods_webhook else {}
    created: JsonObject | None = None
    message, code, began = "", 0, monotonic()
    try:
        created = await server.create(f"/api/v1/namespaces/{quote(namespace, safe='')}/pods", pod, {"dryRun": "All"})
    except UnreachableError:
        raise
    except ApiServerError as error:
        if 'cannot create resource "pods"' in str(error):
            raise
        message, code = str(error), error.code
    seconds = monotonic() - began
    not_enforced = reason_not_enforced(policy, pod, namespace, user)
    return Trial(namespace, workload_type, seconds, created, message, code, not_enforced)


def _trial_place(installation: Installation, given: str | None) -> tuple[str, str] | None:
    """Return a namespace whose pods are sent to the webhook, and a workload type that it may use."""
    own = installation.pods_webhook
    names = ["default", *sorted(name_of(each) for each in installation.of(Source.NAMESPACES))]
    for name in [given] if given else names:
        types = list(types_of(installation.policy_of(name), name))
        labels = installation.namespace_labels(name)
        if types and (given or (own is not None and selects_namespace(own[1], labels))):
            return name, types[0]
    return None
