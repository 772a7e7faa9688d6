"""The inputs of a command on pods: policies, scheduler profiles, the cluster with its pending pods, and the pods.

A command lists its options in `with_session` and gets a `Session`.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

import click

from webhook.cli.inputs.clusters import read_view
from webhook.cli.inputs.files import check_standard_input
from webhook.cli.inputs.pending import PendingQueue, place_pending_pods
from webhook.cli.inputs.policies import PlacedPolicies, read_policies
from webhook.cli.inputs.profiles import SchedulersOf, read_schedulers
from webhook.cli.inputs.workloads import Workload, print_misplaced, read_pods
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.snapshot import Snapshot
from webhook.kube.release import Release
from webhook.policy.policy_set import PolicySet

Command = Callable[..., Any]
Option = Callable[[Command], Command]

mutate_option = click.option(
    "--mutate", "with_policy", is_flag=True, help="Apply the policy to the pods first, as the webhook does."
)
policy_or_as_written_option = click.option(
    "--mutate/--as-written",
    "with_policy",
    default=True,
    help="Evaluate the pods as the webhook admits them (the default), or as they are written.",
)
pending_option = click.option(
    "--pending",
    type=click.Choice(["count", "ignore"]),
    default="count",
    show_default=True,
    help="Whether the pending pods of the cluster that wait for a node take their places first.",
)


def max_nodes_option(text: str) -> Option:
    """Return `--max-nodes` with this help."""
    kind = click.IntRange(min=0)
    return click.option("--max-nodes", type=kind, default=20, show_default=True, metavar="N", help=text)


@dataclass
class Session:
    """The values of the shared options, and what they name. Each input is read once, when it is first asked for.

    `policies` are files; `rules` is what they hold, or what is in force in the live cluster.
    `needs_cluster`: without an option that names a cluster, it is the live cluster that kubectl would use.
    `explains`: nodes that an autoscaler could add count, and pods that cannot be placed get suggestions.

    Raises:
        InvalidInput: a file or a live cluster cannot be read, or holds what is not valid.
        click.ClickException: the options contradict each other, or the API server does not answer the request.
    """

    filenames: tuple[str, ...] = ()
    policies: tuple[Path, ...] = ()
    cluster: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    release: Release | None = None
    scheduler_profile: str | None = None
    scheduler_config: str | None = None
    with_policy: bool = False
    pending: str = "count"
    max_nodes: int = 20
    output: str = "text"
    explains: bool = True
    needs_cluster: bool = True

    def __post_init__(self) -> None:
        """Check that standard input is read once."""
        files = [("--filename", each) for each in self.filenames]
        check_standard_input(*files, ("--cluster", self.cluster), ("--scheduler-config", self.scheduler_config))

    @property
    def is_json(self) -> bool:
        """Whether the output is JSON."""
        return self.output == "json"

    @property
    def names_cluster(self) -> bool:
        """Whether an option names a cluster. Otherwise it is the live cluster that kubectl would use."""
        return (self.cluster, self.kubeconfig, self.context) != (None, None, None)

    @property
    def is_live(self) -> bool:
        """Whether the cluster is a live one."""
        return self.cluster is None and (self.needs_cluster or self.names_cluster)

    @property
    def rules(self) -> PolicySet:
        """The policies. Those that are never in force are printed."""
        return self._known_policies.policies

    @cached_property
    def _known_policies(self) -> PlacedPolicies:
        if self.is_live and not self.policies:
            # Imported here, so that a command on a file does not import the client.
            from webhook.cli.inputs.policy_in_force import read_policies_in_force

            if (found := read_policies_in_force(self.kubeconfig, self.context)) is not None:
                return found
        return PlacedPolicies(read_policies(self.policies))

    @cached_property
    def schedulers(self) -> SchedulersOf:
        """The schedulers of each policy."""
        return read_schedulers(self.scheduler_config, self.scheduler_profile, explains=self.explains)

    @cached_property
    def view(self) -> tuple[Snapshot, Disruptions]:
        """The cluster, and what limits the moves of its pods. A command that asks for both asks for this first."""
        snapshot, disruptions = self._read_view(with_disruptions=True)
        assert disruptions is not None  # noqa: S101 - asked for
        return snapshot, disruptions

    @cached_property
    def snapshot(self) -> Snapshot:
        """The cluster."""
        return self.view[0] if "view" in self.__dict__ else self._read_view(with_disruptions=False)[0]

    def _read_view(self, *, with_disruptions: bool) -> tuple[Snapshot, Disruptions | None]:
        # Small files with errors come before a cluster, which takes longer to read.
        _ = self.schedulers, self.policies and self.rules
        given = self.cluster, self.kubeconfig, self.context, self.release
        return read_view(*given, with_disruptions=with_disruptions)

    def workloads(self, snapshot: Snapshot | None) -> list[Workload]:
        """Return the pods of the files, with the policies for their namespaces in `snapshot`; print what is wrong."""
        found = read_pods(self.filenames, self._known_policies, snapshot) if self.filenames else []
        print_misplaced(found)
        return found

    def queue(self, snapshot: Snapshot) -> PendingQueue:
        """Return the pending pods of `snapshot`, placed as the default policy configures it."""
        scheduler = self.schedulers(self.rules.default).for_pending()
        return place_pending_pods(snapshot, scheduler, counts=self.pending == "count")


_SHARED = {each.name for each in fields(Session)}


def with_session(*options: Option, explains: bool = True, needs_cluster: bool = True) -> Callable[[Command], Command]:
    """Add `options` to a command, in their order in --help. It gets their values as a Session.

    Values of options that are the command's own follow by name. The command returns its exit code.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> None:
            shared = {name: given.pop(name) for name in _SHARED & given.keys()}
            session = Session(**shared, explains=explains, needs_cluster=needs_cluster)
            click.get_current_context().exit(command(session, **given))

        for option in reversed(options):
            option(run)
        return run

    return decorate
