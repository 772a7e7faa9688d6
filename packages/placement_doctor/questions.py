"""Questions that are asked by creating objects: a sample pod on dry run, and the review of the own user."""

import asyncio
from datetime import UTC, datetime
from urllib.parse import quote

from placement_doctor import sample_pods
from placement_doctor.cluster import Cluster, ServerClock, Trial, name_of
from placement_doctor.matching import labels_selected_by, selects_namespace
from placement_doctor.nodes import nodes_of, offered_cards
from placement_doctor.sample_pods import NO_USER, User, types_of
from placement_doctor.source import Source
from webhook.documents.documents import JsonObject, field
from webhook.watch.api_errors import ApiServerError, UnreachableError
from webhook.watch.api_server import ApiServer

_OWN_REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def create_on_trial(server: ApiServer, cluster: Cluster, given: str | None, user: User = NO_USER) -> Trial | None:
    """Create a sample pod as `user` on dry run and return the result.

    The namespace is `given`, or one whose pods are sent to the webhook.

    The result is None if there is no such namespace or nothing is installed.

    Raises:
        ApiServerError: the user may not create pods there, or the API server does not answer.
    """
    chosen = _place(cluster, given)
    if chosen is None or cluster.configuration is None:
        return None
    namespace, workload_type = chosen
    policy = cluster.policy_of(namespace)
    # The webhook can deny pods that no node could ever run.
    cards = offered_cards(policy, nodes_of(cluster))
    pod = sample_pods.sample_pod(policy, workload_type, cards[0] if cards else sample_pods.named_resource(policy))
    pod = sample_pods.named_in_the_canary(policy, pod, namespace)
    pod["metadata"]["labels"] = labels_selected_by(cluster.pods_webhook[1]) if cluster.pods_webhook else {}
    created, message = None, ""
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        created = await server.create(f"/api/v1/namespaces/{quote(namespace, safe='')}/pods", pod, {"dryRun": "All"})
    except ApiServerError as error:
        if isinstance(error, UnreachableError) or 'cannot create resource "pods"' in str(error):
            raise
        message = str(error)
    seconds = clock() - began
    reason = sample_pods.reason_not_enforced(policy, pod, namespace, user)
    return Trial(namespace, workload_type, seconds, created, message, reason)


async def read_clock(server: ApiServer) -> tuple[ServerClock | None, User]:
    """Return the time of the API server, or None if it does not give it, and the user of the client.

    Raises:
        ApiServerError: the API server does not answer.
    """
    review: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    before = datetime.now(UTC)
    answered = await server.create(_OWN_REVIEW, review, {})
    after = datetime.now(UTC)
    user, groups = (field(answered, "status", "userInfo", key) for key in ("username", "groups"))
    own = User(str(user or ""), tuple(map(str, groups if isinstance(groups, list) else ())))
    text = field(answered, "metadata", "creationTimestamp")
    return (ServerClock(datetime.fromisoformat(text), before, after) if isinstance(text, str) else None), own


def _place(cluster: Cluster, given: str | None) -> tuple[str, str] | None:
    """Return a namespace whose pods are sent to the webhook, and a workload type that it may use."""
    own = cluster.pods_webhook
    names = ["default", *sorted(name_of(each) for each in cluster.of(Source.NAMESPACES))]
    for name in [given] if given else names:
        is_sent = given or (own is not None and selects_namespace(own[1], cluster.namespace_labels(name)))
        workload_type = next(types_of(cluster.policy_of(name), name), None)
        if is_sent and workload_type is not None:
            return name, workload_type
    return None
