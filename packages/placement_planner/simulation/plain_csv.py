"""Read a plain CSV trace, which has a line for each group of equal pods."""

from placement_planner.simulation.arrival import Arrival, IsCard
from placement_planner.simulation.csv_rows import CsvRow, csv_rows
from webhook.documents.documents import JsonObject
from webhook.documents.field import InvalidInput
from webhook.kube.pod.name_rules import SUBDOMAIN
from webhook.placement.scorer import PodSignature

COLUMNS = ("arrival", "requests")
OPTIONAL = ("duration", "replicas", "annotations", "name", "namespace", "labels", "priority", "scheduler")


def read_plain_csv(data: bytes, place: str, is_card: IsCard) -> list[Arrival]:
    """Return the pods of a CSV trace. `is_card` returns true for a resource whose units are cards.

    `arrival` is in seconds from the beginning of the trace, and `duration` in seconds. A pod without a duration never
    ends. `requests`, `annotations` and `labels` are lists such as `cpu=4;memory=32Gi;nvidia.com/gpu=1`.

    Raises:
        InvalidInput: a row is malformed.
    """
    pods: dict[tuple[str, ...], tuple[JsonObject, int]] = {}
    return [_arrival(row, pods, is_card) for row in csv_rows(data, place, COLUMNS, OPTIONAL)]


def _arrival(row: CsvRow, pods: dict[tuple[str, ...], tuple[JsonObject, int]], is_card: IsCard) -> Arrival:
    key = tuple(row.cell(name) for name in ("requests", *OPTIONAL[2:]))
    if key not in pods:
        pods[key] = _pod(row, is_card)
    pod, cards = pods[key]
    duration = row.seconds("duration") if row.cell("duration") else None
    replicas = row.count("replicas", least=1) if row.cell("replicas") else 1
    return Arrival(row.seconds("arrival"), duration, pod, cards, row.place, replicas)


def _pod(row: CsvRow, is_card: IsCard) -> tuple[JsonObject, int]:
    """Return the pod of a row, and the number of cards that it requests."""
    row.text("requests")
    requests = _pairs(row, "requests")
    # An extended resource needs equal limits.
    limits = {name: amount for name, amount in requests.items() if "/" in name}
    container = {"name": "main", "image": "trace", "resources": {"requests": requests, "limits": limits}}
    name = row.cell("name") or "trace"
    if detail := next(SUBDOMAIN.errors(name), ""):
        raise row.error("name", detail)
    metadata: JsonObject = {"name": name, "annotations": _pairs(row, "annotations")}
    metadata |= {"labels": _pairs(row, "labels"), "namespace": row.cell("namespace") or "default"}
    spec: JsonObject = {"containers": [container]}
    if row.cell("priority"):
        spec["priority"] = row.count("priority")
    if scheduler := row.cell("scheduler"):
        spec["schedulerName"] = scheduler
    pod = {"metadata": metadata, "spec": spec}
    try:
        info = PodSignature.of(pod).info
    except InvalidInput as error:
        found = error.errors[0]
        raise row.error("requests", f"{found.path.rpartition('[')[2].removesuffix(']')}: {found.detail}") from error
    return pod, sum(amount for name, amount in info.requests if is_card(name))


def _pairs(row: CsvRow, column: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for each in filter(None, (part.strip() for part in row.cell(column).split(";"))):
        name, equals, value = (part.strip() for part in each.partition("="))
        if not equals or not name or name in pairs:
            raise row.error(column, "must be a list such as `cpu=4;memory=32Gi`, with each name once")
        pairs[name] = value
    return pairs
