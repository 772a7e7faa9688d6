"""Pods of batch schedulers, and the warnings on them."""

from collections.abc import Iterable
from typing import Any

from tests.support.admission import policy_with
from tests.support.objects.builders import PodBuilder, make_node_object
from tests.support.views import made_anew
from webhook.backends.references import GangRequest
from webhook.backends.registry import backend_of, batch_names_of
from webhook.placement.reasons.batch_warnings import queue_warnings
from webhook.placement.reasons.gang_request import GangDemand, grouped
from webhook.placement.scorer import PodSignature

Object = dict[str, Any]


def warnings_of(pod: PodBuilder, objects: Iterable[Object], gang: GangRequest | None = None) -> list[str]:
    settings = {each: {"backend": each} for each in ("coscheduling", "native")}
    content, spec = pod.obj(), policy_with(schedulers=settings).spec
    names = batch_names_of(content, backend_of(spec, content["spec"].get("schedulerName", "default-scheduler")))
    info, snapshot = PodSignature.of(content).info, made_anew([make_node_object("a"), *objects])
    found = gang and grouped(gang, names, "default", snapshot)
    return [*queue_warnings(names, info, snapshot, GangDemand.of_pod(found, info) if found else None)]
