"""The inputs of a command on pods: it lists its options in `with_session` and gets a `Session`."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.inputs.clusters import read_cluster, read_objects
from webhook.cli.inputs.files import Command, Option, check_standard_input, options
from webhook.cli.inputs.manifests import read_manifests, unbound, with_namespace
from webhook.cli.inputs.pending import PendingQueue, place_pending_pods
from webhook.cli.inputs.policies import PlacedPolicies, read_policies
from webhook.cli.inputs.profiles import SchedulersOf, read_schedulers
from webhook.cli.inputs.workloads import Workload, print_findings, read_pods
from webhook.cli.output.program import is_kubectl_plugin
from webhook.cli.output.terminal import echo
from webhook.cluster.cluster_file import snapshot_from_documents
from webhook.cluster.disruptions import Disruptions
from webhook.cluster.planned_objects import with_planned_objects
from webhook.cluster.snapshot import Snapshot
from webhook.documents.documents import Document
from webhook.documents.field import FieldError, InvalidInput, invalid
from webhook.kube.api.kubeconfig import namespace_of_context
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.release import Release
from webhook.policy.policy import Policy
from webhook.policy.policy_set import PolicySet

if TYPE_CHECKING:
    from webhook.watch.api_server import ClientConfig

_BAD_INPUT = 2

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
    """The values of the shared options, and the inputs that they name. Each input is read once, at its first use.

    `policies` are files; `rules` are the policies in these files, or those in force in the live cluster. `has_failed`
    is true if an object of the files could not be read and the others are evaluated. `unbinds` is true if bound pods
    are evaluated without their node. `needs_cluster` is true if the command uses the live cluster of kubectl when no
    option names a cluster. `explains` is true if nodes that an autoscaler could add count, and pods that cannot be
    placed get suggestions.

    Raises:
        InvalidInput: a file or a live cluster cannot be read, or contains invalid objects.
        click.ClickException: the options contradict each other, or the API server does not answer the request.
    """

    filenames: tuple[str, ...] = ()
    kustomize: str | None = None
    recursive: bool = False
    namespace: str | None = None
    strict: bool = False
    policies: tuple[Path, ...] = ()
    cluster: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    in_cluster: bool = False
    release: Release | None = None
    scheduler_profile: str | None = None
    scheduler_config: str | None = None
    with_policy: bool = False
    pending: str = "count"
    max_nodes: int = 20
    output: str = "text"
    explains: bool = True
    needs_cluster: bool = True
    needs_pods: bool = True
    unbinds: bool = False
    has_failed: bool = False

    def __post_init__(self) -> None:
        """Check that the options can be given together, and that standard input is read once."""
        if self.needs_pods and not self.has_pods:
            raise click.UsageError("Missing option '-f' / '--filename'.")
        if self.cluster is not None and (self.kubeconfig is not None or self.context is not None):
            raise click.UsageError("--cluster is a file: leave --kubeconfig and --context out.")
        if self.in_cluster and self.names_cluster:
            raise click.UsageError("--in-cluster names the cluster: leave --cluster, --kubeconfig and --context out.")
        files = [("--filename", each) for each in self.filenames]
        check_standard_input(*files, ("--cluster", self.cluster), ("--scheduler-config", self.scheduler_config))

    @property
    def is_json(self) -> bool:
        """True if the output is JSON."""
        return self.output == "json"

    @property
    def names_cluster(self) -> bool:
        """True if an option names a cluster."""
        return (self.cluster, self.kubeconfig, self.context) != (None, None, None)

    @property
    def has_pods(self) -> bool:
        """True if an option names manifests."""
        return bool(self.filenames) or self.kustomize is not None

    @property
    def has_cluster(self) -> bool:
        """True if an option names a cluster, the command needs one, or kubectl runs this program as a plugin."""
        return self.names_cluster or self.needs_cluster or is_kubectl_plugin()

    @property
    def is_live(self) -> bool:
        """True if the cluster is a live one."""
        return self.cluster is None and self.has_cluster

    @property
    def rules(self) -> PolicySet:
        """The policies. The names of policies that are never in force are printed."""
        return self._known_policies.policies

    def place_of(self, policy: Policy) -> str:
        """Return the place of `policy` in a live cluster, or an empty string for a policy from a file."""
        return self._known_policies.place_of(policy)

    def is_known(self, policy: Policy) -> bool:
        """Return whether `policy` is one that was given or is in force, and does not stand in for an unknown one."""
        return self._known_policies.is_known(policy)

    @cached_property
    def _known_policies(self) -> PlacedPolicies:
        in_force = self.read_policies_in_force() if self.is_live and not self.policies else None
        return in_force or PlacedPolicies(read_policies(self.policies))

    def read_policies_in_force(self) -> PlacedPolicies | None:
        """Return the policies in force in the live cluster, or None if they are not known."""
        # Imported here, so that a command on a file does not import the client.
        from webhook.cli.inputs.policy_in_force import read_policies_in_force

        return read_policies_in_force(self.source)

    @property
    def source(self) -> "ClientConfig":
        """The configuration of the client of the live cluster."""
        # Imported here, so that a command on a file does not import the client.
        from webhook.watch.api_server import ClientConfig

        return ClientConfig(self.kubeconfig, self.in_cluster, self.context)

    @cached_property
    def schedulers(self) -> SchedulersOf:
        """The schedulers of each policy."""
        return read_schedulers(self.scheduler_config, self.scheduler_profile, explains=self.explains)

    @cached_property
    def view(self) -> tuple[Snapshot, Disruptions]:
        """The cluster, and the Disruptions of its pods. A command that needs both must read this before `snapshot`."""
        self._read_small_files()
        if self.cluster is not None:
            documents = read_objects(self.cluster)
            snapshot = snapshot_from_documents(documents)
            disruptions = Disruptions.of(snapshot, documents)
        else:
            from webhook.cli.inputs.live import read_live_disruptions

            snapshot, disruptions = read_live_disruptions(self.source)
        return self._completed(snapshot), disruptions

    @cached_property
    def snapshot(self) -> Snapshot:
        """The cluster."""
        if "view" in self.__dict__:
            return self.view[0]
        self._read_small_files()
        if self.cluster is not None:
            return self._completed(read_cluster(self.cluster))
        # Imported here, so that a command on a file does not import the client.
        from webhook.cli.inputs.live import read_live_cluster

        return self._completed(read_live_cluster(self.source))

    def _read_small_files(self) -> None:
        """Read the inputs that can have errors before the cluster, because reading the cluster takes longer."""
        _ = self.schedulers, self.policies and self.rules, self._manifests

    def _completed(self, snapshot: Snapshot) -> Snapshot:
        snapshot = snapshot if self.release is None else replace(snapshot, release=self.release)
        if snapshot.release.note:
            echo(snapshot.release.note, err=True)
        return with_planned_objects(snapshot, self.documents)

    @cached_property
    def _manifests(self) -> list[Document]:
        found = read_manifests(self.filenames, self.kustomize, recursive=self.recursive)
        return unbound(found) if self.unbinds else found

    @cached_property
    def documents(self) -> list[Document]:
        """The objects of the files. Objects without a namespace get that of the option or of the context."""
        return with_namespace(self._manifests, self._given_namespace) if self._given_namespace else self._manifests

    @cached_property
    def _given_namespace(self) -> str:
        # After the cluster: the kubeconfig can be a pipe.
        of_context = namespace_of_context(self.kubeconfig, self.context) if self.is_live and not self.namespace else ""
        return self.namespace or of_context

    @property
    def default_namespace(self) -> str:
        """The namespace of the option or of the context, else the default one."""
        return self._given_namespace or DEFAULT_NAMESPACE

    def workloads(self, snapshot: Snapshot | None, *, may_be_none: bool = True) -> list[Workload]:
        """Return the pods of the files, with the policies for their namespaces in `snapshot`; print what is wrong.

        Raises:
            InvalidInput: there is no object, or no object has a pod and not `may_be_none`; or, with `strict`, an object
                cannot be read or has unknown fields.
        """
        if not self.has_pods:
            return []
        found, errors = read_pods(self.documents, self._known_policies, snapshot)
        if errors and not found:
            raise InvalidInput(errors)
        if not self.documents or not (found or may_be_none):
            names = " ".join((*self.filenames, self.kustomize or "")).strip()
            raise InvalidInput([invalid("--filename", names, "holds no pod and nothing that makes one")])
        self.report(errors)
        print_findings(found, snapshot, is_strict=self.strict)
        return found

    def report(self, errors: Sequence[FieldError]) -> None:
        """Print the errors of an object; the command goes on with the others.

        Raises:
            InvalidInput: the errors, with `strict`.
        """
        if errors and self.strict:
            raise InvalidInput(errors)
        for error in errors:
            self.has_failed = True
            echo(f"Error: {error}", err=True)

    def workloads_of(self, documents: Sequence[Document], snapshot: Snapshot) -> list[Workload]:
        """Return the pods of objects of the cluster, with the policies for their namespaces in `snapshot`.

        Raises:
            InvalidInput: an object cannot be read, or has no pods.
        """
        found, errors = read_pods(documents, self._known_policies, snapshot)
        if errors:
            raise InvalidInput(errors)
        return found

    def queue(self, snapshot: Snapshot) -> PendingQueue:
        """Return the pending pods of `snapshot`, placed as the default policy configures it."""
        scheduler = self.schedulers(self.rules.default).for_pending()
        settings = self.rules.default.spec.schedulers
        return place_pending_pods(snapshot, scheduler, counts=self.pending == "count", schedulers=settings)


_SHARED = {each.name for each in fields(Session)}


def with_session(*given: Option, **fixed: bool) -> Option:
    """Add options to a command, which gets a Session (with the fields `fixed`) and returns an exit code."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**values: Any) -> None:
            shared = {name: values.pop(name) for name in _SHARED & values.keys()}
            session = Session(**shared, **fixed)  # type: ignore[arg-type] # the fields that are flags
            code = command(session, **values)
            click.get_current_context().exit(_BAD_INPUT if session.has_failed else code)

        return options(*given)(run)

    return decorate
