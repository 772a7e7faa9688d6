"""The sources that the pages of the console read, and the type of their endpoints.

The sources are the view of the cluster, facts about its pods, the policies, and audit files.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from placement_console.pod_facts import PodFacts
from webhook.cli.inputs.clusters import read_objects
from webhook.cli.inputs.live import read_live_disruptions
from webhook.cli.inputs.session import Session
from webhook.cli.records.audit_source import Source
from webhook.cluster.cache.object_key import key_of
from webhook.cluster.cache.resources import Resource
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject
from webhook.kube.deadline import Expired, never
from webhook.serving.view.views import FixedView, View

Query = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: the cluster at its time, its query, and its body, which is empty for GET.

    `expired` returns whether the time for it is over. The worker thread has `snapshot`, because only the thread that
    applies the events of the watches can ask a live view for one.
    """

    snapshot: Snapshot
    query: Query = field(default_factory=dict)
    body: bytes = b""
    expired: Expired = never


class NotFoundError(Exception):
    """The object that a request names does not exist."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Answers requests for `path`, which begins with `/api/`, with JSON.

    Expensive answers are computed one after the other in the worker thread. Other answers take a few milliseconds.
    `reported` returns the queries whose answers a report contains, by default none.

    `answer` raises InvalidInput for invalid input, and NotFoundError.
    """

    path: str
    answer: Callable[[Asked], object]
    method: Literal["GET", "POST"] = "GET"
    is_costly: bool = False
    reported: Callable[[], Iterable[Query]] = lambda: ()


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of the pages. The policies and schedulers of `session` are read before the server starts.

    `view` has the current snapshot, and `facts` the facts about pods that a snapshot does not contain. `movable`
    returns a snapshot with its Disruptions; it lists a live cluster again. `audit` are audit files; without files, the
    records of the replicas are used if the cluster is live. `name` is the name of the cluster in the title.
    """

    session: Session
    view: View
    facts: PodFacts
    movable: Callable[[], tuple[Snapshot, Disruptions]]
    audit: tuple[str, ...] = ()
    name: str = ""


def facts_for(session: Session, audit: tuple[str, ...]) -> PodFacts:
    """Return an empty PodFacts. The small inputs are read first, because reading a cluster takes longer.

    Raises:
        InvalidInput: an input cannot be read, or a file in `audit` is not an audit file.
    """
    if audit:
        with Source(audit, None).opened():
            pass
    policies, _ = session.rules, session.schedulers
    return PodFacts(policies.default.spec.key_domain)


def fixed_sources(session: Session, audit: tuple[str, ...] = ()) -> Sources:
    """Return fixed sources from the cluster file, or from the live cluster at this moment.

    Raises:
        InvalidInput: an input cannot be read.
        click.ClickException: the API server does not answer the request.
    """
    facts = facts_for(session, audit)
    if session.cluster is not None:
        documents = read_objects(session.cluster)
        facts.add(documents)
        view, name = FixedView(snapshot_from_documents(documents)), f"file {Path(session.cluster).name}"
        snapshot = view.snapshot()
        return Sources(session, view, facts, lambda: (snapshot, Disruptions.of(snapshot, documents)), audit, name)

    def note(resource: Resource, items: list[JsonObject], _: bool) -> None:
        for each in items:
            facts.object_changed(resource.name_in_cache, key_of(resource.name_in_cache, each), each)

    _, name = asyncio.run(session.source.read())
    snapshot, disruptions = read_live_disruptions(session.source, note)
    return Sources(session, FixedView(snapshot), facts, lambda: (snapshot, disruptions), audit, name)
