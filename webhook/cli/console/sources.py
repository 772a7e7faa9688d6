"""The sources that the pages of the console read: the view of the cluster, facts of its pods, policies, audit files."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from webhook.cli.console.pod_facts import PodFacts
from webhook.cli.inputs.clusters import read_objects
from webhook.cli.inputs.live import read_live_disruptions
from webhook.cli.inputs.session import Session
from webhook.cli.records.audit_source import Source
from webhook.cluster.cache.object_key import key_of
from webhook.cluster.cache.resources import Resource
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.file import snapshot_from_documents
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import JsonObject
from webhook.serving.view.views import FixedView, View


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of the pages. The policies and schedulers of `session` are read before the server starts.

    `view` has the current snapshot, `facts` what a snapshot does not hold of a pod. `movable` returns a snapshot with
    what limits the moves of its pods; it lists a live cluster again. `audit` are files of audit records; without one
    they are those of the replicas, if the cluster is live. `name` is the cluster in the title.
    """

    session: Session
    view: View
    facts: PodFacts
    movable: Callable[[], tuple[Snapshot, Disruptions]]
    audit: tuple[str, ...] = ()
    name: str = ""


def facts_for(session: Session, audit: tuple[str, ...]) -> PodFacts:
    """Return where to keep the facts of pods. It reads the small inputs first: a cluster takes longer to read.

    Raises:
        InvalidInput: an input cannot be read, or a file of `audit` is no audit file.
    """
    if audit:
        with Source(audit, None).opened():
            pass
    policies, _ = session.rules, session.schedulers
    return PodFacts(policies.default.spec.key_domain)


def fixed_sources(session: Session, audit: tuple[str, ...] = ()) -> Sources:
    """Return the sources at one moment: of the cluster file, or of the live cluster as it is now.

    Raises:
        InvalidInput: an input cannot be read.
        click.ClickException: the API server does not answer the request.
    """
    facts = facts_for(session, audit)
    if session.cluster is not None:
        documents = read_objects(session.cluster)
        facts.add(documents)
        view, name = FixedView(snapshot_from_documents(documents)), f"file {Path(session.cluster).name}"
        return Sources(
            session, view, facts, lambda: (view.snapshot(), Disruptions.from_documents(documents)), audit, name
        )

    def note(resource: Resource, items: list[JsonObject], _: bool) -> None:
        for each in items:
            facts.note(resource.name_in_cache, key_of(resource.name_in_cache, each), each)

    _, name = asyncio.run(session.source.read())
    snapshot, disruptions = read_live_disruptions(session.source, note)
    return Sources(session, FixedView(snapshot), facts, lambda: (snapshot, disruptions), audit, name)
