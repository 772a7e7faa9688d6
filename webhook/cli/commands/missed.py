"""`missed`: list pods that were stored while the webhook was away."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from certs.registration import Target
from webhook.admission.missed import MissedPod, Scope, missed_pod
from webhook.admission.registered_selection import Selection, selection_of_configuration
from webhook.cli.inputs.clusters import live_options
from webhook.cli.inputs.files import file_option, output_option, place_of, read_text
from webhook.cli.inputs.policies import PlacedPolicies, policies_option, policy_to_json, read_policies
from webhook.cli.output.screen import Column, Row, print_line, print_table, text_console
from webhook.cli.output.terminal import Progress, echo, echo_json
from webhook.cluster.cache.resources import Resource
from webhook.cluster.snapshot import Namespace
from webhook.documents.documents import JsonObject, field, parse
from webhook.documents.field import BETWEEN_ERRORS, InvalidInput, invalid
from webhook.policy.policy_documents import accepted_policies
from webhook.policy.policy_set import PolicySet
from webhook.policy.spec.document import API_VERSION, KIND

_CONFIGURATIONS = Resource(
    "MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations"
)
_NAMESPACES = Resource("Namespace", "v1", "namespaces", is_required=True)
_POLICIES = Resource(KIND, API_VERSION, "placementpolicies", is_extension=True)
_PODS = Resource("Pod", "v1", "pods", "status.phase!=Succeeded,status.phase!=Failed", is_required=True)
_EXIT_CODE = 3


class _Search:
    """Collects missed pods from the objects given to `add`. Add namespaces, configurations and policies before pods."""

    def __init__(self, policies: PlacedPolicies) -> None:
        self.found: list[MissedPod] = []
        self.pods = 0
        self.undecided: Counter[str] = Counter()
        self.is_registered = False
        self._file = policies
        self._objects: dict[str, JsonObject] = {}
        self._policies: PolicySet | None = policies.policies
        self._scopes: dict[str, Scope] = {}
        self._selection = Selection.shipped(Target().namespace)

    @property
    def policies(self) -> PolicySet:
        if self._policies is None:
            self._policies = accepted_policies(self._file.policies, self._objects.values())
        return self._policies

    def remedy_of(self, pod: MissedPod) -> str:
        """Return what to do about a missed pod; empty if the policy for it is not known."""
        return pod.remedy if self._file.is_known(pod.policy) else ""

    def add(self, kind: str, content: JsonObject) -> None:
        name = str(field(content, "metadata", "name"))
        if kind == _NAMESPACES.kind:
            with suppress(InvalidInput):  # then admission gives its pods no defaults either
                namespace = Namespace.of(content)
                self._scopes[name] = Scope(namespace.annotations, namespace.labels)
        elif kind == _CONFIGURATIONS.kind:
            if (selection := selection_of_configuration(content)) is not None:
                self._selection, self.is_registered = selection, True
        elif kind == KIND:
            self._objects[name], self._policies = content, None
        elif kind == _PODS.kind:
            self._add_pod(content)

    def _add_pod(self, content: JsonObject) -> None:
        self.pods += 1
        if (missed := missed_pod(content, self.policies, self._selection, self._scopes)) is not None:
            self.found.append(missed)
            self.undecided.update(self._selection.undecided(content))

    def forget_pods(self) -> None:
        """Drop the pods, because their list was interrupted and begins again."""
        self.found.clear()
        self.undecided.clear()
        self.pods = 0


@click.command()
@file_option(
    "--cluster",
    help="The output of `kubectl get pods,namespaces -A -o json` (or yaml); - for standard input. Default: the live "
    "cluster that kubectl would use.",
)
@live_options
@click.option("--in-cluster", is_flag=True, help="The cluster of this pod, with its service account.")
@policies_option
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=500,
    show_default=True,
    metavar="N",
    help="Maximum pods, and commands, in the text; -o json has all.",
)
@output_option
@click.pass_context
def missed(
    ctx: click.Context,
    cluster: str | None,
    kubeconfig: Path | None,
    context: str | None,
    in_cluster: bool,
    policies: tuple[Path, ...],
    limit: int,
    output: str,
) -> None:
    """List pods that the policy concerns and that were stored without its patch, with the rules that they lack.

    They were created while no replica answered and failurePolicy was Ignore, before the webhook was registered or the
    policy enforced for them, or by an exempt user; compare when they were created. Without a known policy, nothing is
    advised. Pods that the webhook leaves alone are not listed: those that the selectors or conditions of the registered
    webhook exclude, that opt out, or that have ended. PlacementPolicy objects that a server has accepted come before
    --policy. Without it, the policy of a live cluster is that of the ConfigMap of its servers. Exit code 0: none; 3:
    some.

    \b
    Examples:
      placement-webhook missed
      placement-webhook missed --policy policy.yaml -o json
      kubectl get pods,namespaces -A -o json | placement-webhook missed --cluster -
    """
    given = {"--cluster": cluster, "--kubeconfig or --context": kubeconfig or context, "--in-cluster": in_cluster}
    chosen = [flag for flag, value in given.items() if value]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} are mutually exclusive; give one of them.")
    if cluster is not None:
        search = _Search(PlacedPolicies(read_policies(policies)))
        _read_file(search, cluster)
    else:
        search = _read_live(policies, kubeconfig, context, in_cluster)
    if not search.is_registered:
        echo("not known: the selectors of the registered webhook; those of deploy/base are assumed", err=True)
    for name, pods in search.undecided.items():
        echo(f"not known: whether the condition {name} excludes {pods} of these pods", err=True)
    is_chosen = bool(search.policies.others)
    if output == "json":
        for each in search.found:
            echo_json(_to_json(each, search.remedy_of(each), is_chosen=is_chosen))
    else:
        _print_text(search, limit, is_chosen=is_chosen)
    ctx.exit(_EXIT_CODE if search.found else 0)


def _read_file(search: _Search, filename: str) -> None:
    by_kind: dict[str, list[JsonObject]] = {}
    for document in parse(read_text(filename, "--cluster"), place_of(filename)):
        by_kind.setdefault(str(document.content.get("kind")), []).append(document.content)
    if by_kind.keys().isdisjoint(("Pod", "Namespace")):
        detail = "holds no Pod; give what `kubectl get pods,namespaces -A -o json` prints"
        raise InvalidInput([invalid("--cluster", filename, detail)])
    for kind in (_NAMESPACES.kind, _CONFIGURATIONS.kind, _POLICIES.kind, _PODS.kind):
        for content in by_kind.get(kind, ()):
            search.add(kind, content)


def _read_live(policies: tuple[Path, ...], kubeconfig: Path | None, context: str | None, in_cluster: bool) -> _Search:
    """Read a live cluster page by page and return its search, with `policies` or else the policies in force there."""
    # Imported here, so that a command on a file does not import the client.
    from webhook.cli.inputs.live import list_resources
    from webhook.cli.inputs.policy_in_force import read_policies_in_force
    from webhook.watch.api_server import ClientConfig

    source = ClientConfig(kubeconfig, in_cluster, context)
    in_force = None if policies else read_policies_in_force(source)
    search = _Search(in_force or PlacedPolicies(read_policies(policies), stands_in=not policies))
    progress = Progress()

    def take(resource: Resource, items: list[JsonObject], begins: bool) -> None:
        if begins and resource is _PODS:
            search.forget_pods()
        for content in items:
            search.add(resource.kind, content)
        progress.show(f"{search.pods} pods read, {len(search.found)} missed")

    list_resources(source, (_NAMESPACES, _CONFIGURATIONS, _POLICIES, _PODS), take)
    progress.end()
    return search


def _to_json(pod: MissedPod, remedy: str, *, is_chosen: bool) -> Mapping[str, Any]:
    return {
        "pod": f"{pod.namespace}/{pod.name}",
        "namespace": pod.namespace,
        "name": pod.name,
        "owner": {"kind": pod.owner.kind, "name": pod.owner.name} if pod.owner else None,
        "created": pod.created or None,
        "workloadType": pod.workload_type or None,
        "rules": list(pod.rules),
        "denied": pod.denial or None,
        "remedy": remedy or None,
        **({"policy": policy_to_json(pod.policy)} if is_chosen else {}),
    }


_COLUMNS = (
    Column("NAMESPACE", least=12),
    Column("POD", least=16),
    Column("OWNER", least=16, drop=2),
    Column("CREATED", drop=1),
    Column("MISSED", least=24, folds=True),
)


def _print_text(search: _Search, limit: int, *, is_chosen: bool) -> None:
    console, pods = text_console(), search.found
    if not pods:
        print_line(console, f"no pod was missed, of {search.pods}")
        return
    print_table(console, _COLUMNS, (_row(each, is_chosen=is_chosen) for each in pods[:limit]))
    _print_rest(console, len(pods) - limit)
    print_line(console, "")
    remedies = Counter(remedy for each in pods if (remedy := search.remedy_of(each)))
    if unknown := len(pods) - remedies.total():
        text = "the policy in force is not known, and the built-in one would change them. Give the policy with --policy"
        print_line(console, f"{unknown} of {search.pods} pods have no mark: {text}")
    if not remedies:
        return
    print_line(console, f"{remedies.total()} of {search.pods} pods were missed. What to do:")
    for remedy, count in islice(remedies.items(), limit):
        print_line(console, f"  {remedy}" + (f"  # {count} pods" if count > 1 else ""))
    _print_rest(console, len(remedies) - limit)


def _print_rest(console: Console, count: int) -> None:
    if count > 0:
        print_line(console, f"and {count} more; -o json has all", "dim")


def _row(pod: MissedPod, *, is_chosen: bool) -> Row:
    denial = pod.denial.replace(BETWEEN_ERRORS, "; ")
    what = f"would be denied: {denial}" if denial else ", ".join(pod.rules)
    by = f"{pod.policy.identity}: " if is_chosen else ""
    return Row((pod.namespace, pod.name, str(pod.owner or ""), pod.created, f"{by}{what}"))
