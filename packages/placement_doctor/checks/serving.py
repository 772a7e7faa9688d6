"""The webhook is installed, API servers reach it, and it injects fields into pods."""

import re
from collections.abc import Iterator

from certs.registration import manifest, missing_webhooks
from certs.webhook_rules import PODS
from placement_doctor import commands
from placement_doctor.called_address import unlike_the_others, usual_address
from placement_doctor.check import Finding, check, error, info, named, warning
from placement_doctor.cluster import Cluster, Trial, name_of
from placement_doctor.matching import is_called_for_pods, selects_pods_of, timeout_seconds
from placement_doctor.source import Source
from placement_doctor.workloads import controller_of, has_flag
from webhook.cli.inputs.installed_servers import containers_of, option
from webhook.documents.documents import JsonObject, field
from webhook.documents.parts import listed

_OTHERS = "the other findings may name the cause"
_FAILED = re.compile(r'failed calling webhook "(?P<name>[^"]+)": (?P<reason>.*)', re.DOTALL)
_DENIED = re.compile(r'admission webhook "(?P<name>[^"]+)" denied the request: (?P<reason>.*)', re.DOTALL)


@check("grant the rights of [Rights](#rights)")
def readable(cluster: Cluster) -> Iterator[Finding]:
    """A part of the cluster cannot be read, so the checks that need it find nothing."""
    # The order in which sources are refused varies.
    for source, reason in sorted(cluster.refusals.items(), key=lambda item: item[0].title.casefold()):
        granted = f"grant the right: {source.rights}"
        remedy = granted if source.rights != "none" else "run doctor where it can be reached"
        yield warning(source.title, f"not read: {reason}", f"{remedy}; --list prints the checks that need it")


@check("`placement-webhook certs register`; or name it with `--configuration`", needs={Source.CONFIGURATIONS})
def installed(cluster: Cluster) -> Iterator[Finding]:
    """There is no webhook configuration of the name, or a second one, it is not called for pods, or lacks a webhook."""
    if not cluster.knows(Source.CONFIGURATIONS):
        return
    if cluster.configuration is None:
        known = cluster.of(Source.CONFIGURATIONS)
        shown = named(map(name_of, known), 5) or "none"
        what = f"does not exist, so no pod is sent to the webhook; the cluster has {shown}"
        own = next((name_of(each) for each in known if _is_ours(each)), None)
        hint = _created(cluster) if own is None else f"`--configuration={own}` names the one that exists"
        yield error(cluster.place, what, hint)
        return
    where = f"{cluster.place}: webhooks"
    if not any(map(is_called_for_pods, cluster.webhooks)):
        yield error(where, "no rule has the creation of pods", _with_rules(cluster))
    for other in cluster.of(Source.CONFIGURATIONS):
        if other is not cluster.configuration and _is_ours(other):
            what = f"has webhooks of ours beside those of {cluster.target.configuration}: each pod is sent twice"
            deleted = commands.command("kubectl", "delete", "mutatingwebhookconfiguration", name_of(other))
            yield warning(f"MutatingWebhookConfiguration {name_of(other)}", what, deleted)
    missing = missing_webhooks(cluster.configuration, manifest(cluster.target))
    if missing:
        what = f"lacks {named(str(each['name']) for each in missing)}: it was made from an earlier manifest"
        yield warning(where, what, commands.registered_again(cluster))


def _is_ours(configuration: JsonObject) -> bool:
    return any(".placement." in str(each.get("name")) for each in listed(configuration, "webhooks"))


def _created(cluster: Cluster) -> str:
    """Return the remedy that creates a missing configuration: the certs controller if it is configured for this."""
    if has_flag(controller_of(cluster) or {}, "--create-configuration"):
        what = "the certs controller creates it when API servers can trust the server"
        return f"{what}: {commands.logs(cluster)} has what it waits for"
    return commands.registered_again(cluster)


def _with_rules(cluster: Cluster) -> str:
    """Return the remedy that adds the rules for pods to a configuration."""
    own = next((index for index, each in enumerate(cluster.webhooks) if each.get("name") == PODS), None)
    if own is None:
        deleted = commands.command("kubectl", "delete", "mutatingwebhookconfiguration", cluster.target.configuration)
        return f"{deleted}, then {commands.registered_again(cluster)}"
    rules = next(each["rules"] for each in manifest(cluster.target)["webhooks"] if each["name"] == PODS)
    return f"{commands.patched(cluster, {f'/webhooks/{own}/rules': rules})} adds it"


@check(
    "`kubectl -n NAMESPACE get service,endpointslices,pods`; apply the manifests of deploy/ again",
    needs={Source.CONFIGURATIONS, Source.SERVICE, Source.ENDPOINTS, Source.DEPLOYMENTS},
)
def service(cluster: Cluster) -> Iterator[Finding]:
    """The Service is missing, not ready or has another port, or one webhook calls elsewhere (Service or URL)."""
    yield from unlike_the_others(cluster)
    if not (cluster.is_called_by_service and cluster.knows(Source.SERVICE)):
        return
    own = (cluster.target.namespace, cluster.target.service)
    where = f"Service {'/'.join(own)}"
    if cluster.service is None:
        yield error(where, "does not exist, and API servers call it", commands.applied_again(cluster))
        return
    for index, webhook in enumerate(cluster.webhooks):
        called = field(webhook, "clientConfig", "service")
        if isinstance(called, dict) and (called.get("namespace"), called.get("name")) != own:
            what = f"calls {called.get('namespace')}/{called.get('name')}, not {'/'.join(own)}"
            remedy = "let all webhooks call one Service, or name it with --namespace and --service"
            yield warning(f"{cluster.place}: webhooks[{index}].clientConfig.service", what, remedy)
    yield from _ports(cluster, f"{where}: spec.ports", cluster.service)
    is_external = field(cluster.service, "spec", "type") == "ExternalName"
    if not is_external and cluster.knows(Source.ENDPOINTS) and not cluster.ready_addresses:
        remedy = f"{commands.servers(cluster, 'describe')} has the events; the selector must match its labels"
        yield error(where, "has no ready endpoints, so every call fails", remedy)


def _ports(cluster: Cluster, where: str, service: JsonObject) -> Iterator[Finding]:
    name = cluster.target.service
    ports = {each.get("port"): each for each in listed(service, "spec", "ports")}
    called = usual_address(cluster).get("port")
    wanted = {called} if isinstance(called, int) else set()
    for port in sorted(wanted - ports.keys()):
        known = ", ".join(map(str, ports)) or "none"
        what = f"has no port {port}, which API servers call (it has {known})"
        # With several ports, each needs a name of its own.
        added: dict[str, object] = {"/spec/ports/-": {"name": f"port-{port}", "port": port}}
        command = commands.patched(cluster, {"/spec/ports/0/port": port} if len(ports) == 1 else added, name)
        yield error(where, what, f"{command}, or correct clientConfig.service.port")
    containers = containers_of(cluster.deployment or {})
    declared = {port.get("name") for each in containers for port in listed(each, "ports")}
    for port in sorted(wanted & ports.keys()):
        target = ports[port].get("targetPort")
        if cluster.deployment and isinstance(target, str) and target not in declared:
            what = f"targetPort {target} is the name of no port of the Deployment's containers"
            command = commands.patched(cluster, {f"/spec/ports/{list(ports).index(port)}/targetPort": "https"}, name)
            yield error(where, what, f"{command}, or name the container port")


@check(
    "run doctor in the cluster, or `kubectl port-forward` and `--endpoint`; the check `answer` judges meanwhile",
    needs={Source.CONFIGURATIONS, Source.PROBE, Source.TRIAL, Source.ENDPOINTS},
)
def endpoint(cluster: Cluster) -> Iterator[Finding]:
    """No endpoint of the webhook can be reached from this machine.

    API servers can reach Services that other machines cannot. So this is only an error for a URL, or if the dry-run
    creation shows that API servers do not reach the webhook either.
    """
    called = cluster.called
    if not cluster.probes or any(each.certificate is not None for each in called):
        return
    detail = called[0].detail if called else "no address is known"
    addresses = ", ".join(dict.fromkeys(each.address for each in called))
    what = f"{addresses or 'the webhook'}: not reachable from this machine ({detail})"
    if cluster.is_called_by_service or cluster.mark:
        judged = "; the dry-run creation of a pod shows that API servers reach it" if cluster.mark else ""
        forwarded = commands.kubectl(cluster, "port-forward", f"service/{cluster.target.service}", "8443:443")
        remedy = f"{forwarded}, then `placement-webhook doctor --endpoint=localhost:8443`"
        yield info(f"{cluster.place}: clientConfig", what + judged, remedy)
    else:
        yield error(f"{cluster.place}: clientConfig.url", what, "start the webhook there, or correct the url")


@check(
    "the reason is in the finding; if the API server gives none, in its log: `failed calling webhook`",
    needs={Source.CONFIGURATIONS, Source.TRIAL, Source.NAMESPACES, Source.POLICY},
)
def answer(cluster: Cluster) -> Iterator[Finding]:
    """A pod that is created on dry run is not injected, is denied, or takes long."""
    trial, own = cluster.trial, cluster.pods_webhook
    if trial is None or own is None:
        return
    place, webhook = own
    if trial.pod is None:
        yield _refused(cluster, place, trial)
        return
    if trial.not_enforced is not None and not cluster.mark:
        what = f"a dry-run pod cannot show whether API servers get an answer: {trial.not_enforced}"
        yield info(place, what, "`apiserver_admission_webhook_request_total` of API servers counts the calls")
    elif not cluster.mark:
        yield error(
            place,
            f"a dry-run pod of type {trial.workload_type} in namespace {trial.namespace} is created without injection: "
            "API servers get no answer and failurePolicy is Ignore, or they do not call the webhook"
            + _client_ca(cluster),
            _client_ca_remedy(cluster) or f"{_OTHERS}; the log of the API server has `failed calling webhook`",
        )
    if trial.seconds > timeout_seconds(webhook) / 2:
        what = f"the dry-run creation of a pod takes {trial.seconds:.1f} s; all webhooks are in it"
        yield warning(place, what, "`apiserver_admission_webhook_admission_duration_seconds` has the time of each")


def _client_ca(cluster: Cluster) -> str:
    """Return the note for a finding that servers require client certificates, or "" without `--client-ca`."""
    file = option(cluster.deployment or {}, "--client-ca")
    return f"; the servers refuse API servers that present no certificate of the client CA {file}" if file else ""


def _client_ca_remedy(cluster: Cluster) -> str:
    if not _client_ca(cluster):
        return ""
    logs = commands.servers(cluster, "logs")
    return (
        f"if {logs} has `client refused` or `client certificate refused`, give API servers a certificate of the CA of "
        "--client-ca that --client-name allows (docs/mtls.md), or correct the CA"
    )


def _refused(cluster: Cluster, place: str, trial: Trial) -> Finding:
    """Return the finding for a dry-run pod that the webhook denied, did not answer for, or that others rejected."""
    own = {str(each.get("name")) for each in cluster.webhooks}
    failed, denied = _FAILED.search(trial.error), _DENIED.search(trial.error)
    if failed and failed["name"] in own:
        what = f"API servers cannot call it, and pods are refused (failurePolicy Fail): {failed['reason']}"
        remedy = _client_ca_remedy(cluster) or f"{_OTHERS}; check that the webhook runs"
        return error(place, f"{what}{_client_ca(cluster)}", remedy)
    if denied and denied["name"] in own:
        what = f"the webhook denies the smallest pod of type {trial.workload_type}: {denied['reason']}"
        return warning(place, what, "check the policy, and the annotations of the namespace")
    where = f"namespace {trial.namespace}"
    remedy = "choose another namespace with --trial-namespace, or correct what refuses the pod"
    return warning(where, f"a dry-run pod is refused by something else: {trial.error}", remedy)


@check(
    "two replicas on different nodes and a PodDisruptionBudget, as in deploy/base",
    needs={Source.CONFIGURATIONS, Source.DEPLOYMENTS, Source.BUDGETS},
)
def failure_policy(cluster: Cluster) -> Iterator[Finding]:
    """Servers are too few for failurePolicy or not ready, or their PodDisruptionBudget is missing or blocks drains."""
    own, deployment = cluster.pods_webhook, cluster.deployment
    if own is None or deployment is None:
        return
    fails = own[1].get("failurePolicy", "Fail") == "Fail"
    effect = "pods of all namespaces are refused" if fails else "pods are created without injection"
    where = f"{cluster.deployment_kind} {name_of(deployment)}"
    wanted, ready = field(deployment, "spec", "replicas"), field(deployment, "status", "readyReplicas") or 0
    look = f"{commands.servers(cluster, 'describe')} and {commands.servers(cluster, 'logs')} have the reason"
    if wanted in (0, 1):
        found = error if fails else warning
        command = commands.servers(cluster, "scale", "--replicas=2")
        yield found(f"{where}: spec.replicas", f"{wanted}: while the server is away, {effect}", command)
    elif ready == 0:
        yield error(f"{where}: status.readyReplicas", f"no replica is ready: {effect}{_why(deployment)}", look)
    elif ready < (wanted or 1):
        what = f"{ready} of {wanted} replicas are ready{_why(deployment)}"
        yield warning(f"{where}: status.readyReplicas", what, look)
    known = cluster.of(Source.BUDGETS)
    budgets = [each for each in known if selects_pods_of(field(each, "spec", "selector"), deployment)]
    for each in budgets:
        if _allows_no_eviction(each, wanted or 1):
            what = "allows no eviction: the drain of a node with a replica never ends"
            merged = '{"spec":{"maxUnavailable":1,"minAvailable":null}}'
            patched = commands.kubectl(
                cluster, "patch", "pdb", field(each, "metadata", "name"), "--type=merge", "-p", merged
            )
            yield warning(f"PodDisruptionBudget {name_of(each)}: spec", what, patched)
    if cluster.knows(Source.BUDGETS) and not budgets:
        what = f"no PodDisruptionBudget selects its pods: a drain can evict all of them, and {effect}"
        command = commands.kubectl(cluster, "apply", "-f", "deploy/base/poddisruptionbudget.yaml")
        if commands.release_of(cluster) is not None:
            command = commands.upgraded(cluster, "--set=podDisruptionBudget.enabled=true")
        yield warning(where, what, f"{command} makes one")


def _why(deployment: JsonObject) -> str:
    """Return the reason why pods cannot be created, such as an exceeded quota."""
    failed = (each for each in listed(deployment, "status", "conditions") if each.get("type") == "ReplicaFailure")
    return next((f"; {each.get('message')}" for each in failed if each.get("status") == "True"), "")


def _allows_no_eviction(budget: JsonObject, replicas: int) -> bool:
    least, most = field(budget, "spec", "minAvailable"), field(budget, "spec", "maxUnavailable")
    return most in (0, "0%") or least == "100%" or (isinstance(least, int) and least >= replicas)


@check(
    "`kubectl rollout restart` of their owners creates them again",
    needs={Source.CONFIGURATIONS, Source.NAMESPACES, Source.PODS, Source.POLICY},
)
def missed_pods(cluster: Cluster) -> Iterator[Finding]:
    """Pods that the policy concerns were created without injection."""
    if not cluster.missed_count:
        return
    pods = [f"{each.namespace}/{each.name}" for each in cluster.missed]
    more = cluster.missed_count - len(pods)
    shown = ", ".join(pods) + (f" and {more} more" if more else "")
    remedies = (each.remedy for each in cluster.missed)
    worded = dict.fromkeys(f"`{each}`" if each.startswith("kubectl ") else each for each in remedies)
    noun = "pod was" if cluster.missed_count == 1 else "pods were"
    yield warning(
        f"Pods {shown}",
        f"{cluster.missed_count} {noun} created without injection: while no server answered and failurePolicy "
        "was Ignore, before the webhook was installed or the policy enforced for them, or by an exempt user",
        "; ".join(list(worded)[:3]) + "; `placement-webhook missed` has all of them",
    )
