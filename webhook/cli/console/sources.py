"""The sources that the pages of the console read: the view of the cluster, facts of its pods, policies, audit files."""

from collections.abc import Callable
from dataclasses import dataclass

from webhook.cli.console.pod_facts import PodFacts
from webhook.cli.inputs.session import Session
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.snapshot import Snapshot
from webhook.serving.view.start_of_view import View


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
