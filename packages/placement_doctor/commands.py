"""The commands of remedies, with the names of the installation. Pure.

A remedy is text with commands in backticks. A word in capitals, such as FILE, is a placeholder for the reader's value.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import orjson

from certs.registration import Target
from placement_doctor.check import MOST_NAMED
from placement_doctor.cluster import Cluster, Role
from placement_doctor.nodes import grouped
from placement_doctor.workloads import Owner, controller_namespace, controller_of, injected_from, owner_of, secret_of
from webhook.cli.inputs.installed_servers import follows_objects
from webhook.cluster.node_info import Node
from webhook.documents.documents import field
from webhook.documents.parts import texts

CONTROLLER = "placement-webhook-certs"
_RELEASE = "meta.helm.sh/release-name"
# The flags of the commands of `placement-webhook certs` that name parts of an installation, as fields of `Target`.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "rotate": ("namespace", "configuration", "secret"),
    "register": ("namespace", "service", "configuration", "secret", "url"),
    "manifest": ("namespace", "service", "configuration", "url"),
}


def command(*words: str) -> str:
    """Return a command for a shell, in backticks."""
    return f"`{shlex.join(words)}`"


def kubectl(cluster: Cluster, *words: str) -> str:
    """Return a command of kubectl in the namespace of the webhook."""
    return command("kubectl", "-n", cluster.target.namespace, *words)


def servers(cluster: Cluster, *words: str) -> str:
    """Return a command of kubectl on the workload of the servers."""
    name = field(cluster.deployment or {}, "metadata", "name") or Target().service
    return kubectl(cluster, *words, f"{cluster.deployment_kind.lower()}/{name}")


def of_controller(cluster: Cluster, *words: str) -> str:
    """Return a command of kubectl in the namespace of the certs controller."""
    return command("kubectl", "-n", controller_namespace(cluster), *words)


def controller_name(cluster: Cluster) -> str:
    """Return the name of the Deployment of the certs controller."""
    return str(field(controller_of(cluster) or {}, "metadata", "name") or CONTROLLER)


def logs(cluster: Cluster, *flags: str) -> str:
    """Return the command that prints the log of the certs controller."""
    return of_controller(cluster, "logs", f"deployment/{controller_name(cluster)}", *flags)


def patched(cluster: Cluster, fields: Mapping[str, object], service: str | None = None) -> str:
    """Return the command that sets `fields`, given by path, of the webhook configuration or of `service`.

    A field with the value None is removed.
    """
    operations = [
        {"op": "remove", "path": path} if value is None else {"op": "add", "path": path, "value": value}
        for path, value in fields.items()
    ]
    patch = ("--type=json", "-p", orjson.dumps(operations).decode())
    if service is not None:
        return kubectl(cluster, "patch", "service", service, *patch)
    return command("kubectl", "patch", "mutatingwebhookconfiguration", cluster.target.configuration, *patch)


def on_nodes(nodes: Iterable[Node], verb: str, *words: str) -> str:
    """Return a command of kubectl on the first nodes, such as `kubectl label node a b KEY=VALUE`."""
    names = [each.name for each in nodes][:MOST_NAMED]
    return command("kubectl", verb, "node", *names, *words)


def respelt(nodes: Iterable[Node], key: str, value: str, right: str) -> str:
    """Return the commands that correct the value of the label `key` and of the taints of `key`."""
    those, found = list(nodes), []
    if labelled := [each for each in those if each.labels.get(key) == value]:
        found.append(on_nodes(labelled, "label", f"{key}={right}", "--overwrite"))
    tainted = grouped(
        those, lambda node: [each.effect for each in node.taints if (each.key, each.value) == (key, value)]
    )
    found += [on_nodes(some, "taint", f"{key}={right}:{effect}", "--overwrite") for effect, some in tainted.items()]
    return " and ".join(found)


def certs(cluster: Cluster, verb: str, *flags: str) -> str:
    """Return a command of `placement-webhook certs`, with the names of the installation that are not the default ones.

    `rotate` requests new certificates from the certs controller, `register` writes certificates to the Secret and their
    CA to the caBundle, and `manifest` prints the webhook configuration.
    """
    # One webhook can call another address, which is a finding of its own.
    found = () if cluster.is_called_by_service else (field(each, "clientConfig", "url") for each in cluster.webhooks)
    urls = Counter(url for url in found if isinstance(url, str))
    url = next((url for url, _ in urls.most_common(1)), None)
    target = replace(cluster.target, secret=secret_of(cluster), url=url)
    names = {each: getattr(target, each) for each in _NAMES[verb]}
    changed = (f"--{name}={value}" for name, value in names.items() if value != getattr(Target(), name))
    return command("placement-webhook", "certs", verb, *flags, *changed)


def registered(cluster: Cluster, *flags: str) -> str:
    """Return the command that registers the certificates.

    A server that is not behind a Service does not mount the Secret, so the command needs the folder with its files.
    """
    folder = ["--dir=DIR"] if cluster.webhooks and not cluster.is_called_by_service else []
    return certs(cluster, "register", *flags, *folder)


def upgraded(cluster: Cluster, *flags: str) -> str:
    """Return the command that applies the chart with the values of the release.

    The chart can be newer than the release.

    It does not use `--reuse-values`, because new values of the chart would then be missing.
    """
    words = (release_of(cluster) or Target().service, "deploy/chart", "-n", cluster.target.namespace)
    return command("helm", "upgrade", *words, "--reset-then-reuse-values", *flags)


def release_of(cluster: Cluster) -> str | None:
    """Return the name of the Helm release that installed the webhook, or None if there is none."""
    made = (cluster.configuration, cluster.deployment, controller_of(cluster))
    names = (texts(each or {}, "metadata", "annotations").get(_RELEASE) for each in made)
    return next(filter(None, names), None)


def overlay_of(cluster: Cluster) -> str:
    """Return the shipped overlay of deploy/ that is most similar to this installation."""
    owner = owner_of(cluster)
    if follows_objects(cluster.deployment or {}):
        return "deploy/overlays/crd"
    if owner is Owner.CERT_MANAGER:
        return "deploy/overlays/cert-manager"
    if owner is Owner.PERSON:
        return "deploy/base"
    return f"deploy/overlays/{'templates' if cluster.policy.spec.workload_objects.mutate_templates else 'self-managed'}"


def applied_again(cluster: Cluster) -> str:
    """Return the remedy that applies the manifests of this installation again, with Helm if Helm installed it."""
    if release_of(cluster) is not None:
        return f"{upgraded(cluster)} applies the chart again"
    return f"{command('kubectl', 'apply', '-k', overlay_of(cluster))}, or your own overlay, applies it again"


def registered_again(cluster: Cluster) -> str:
    """Return the remedy that adds the parts of the manifest that the webhook configuration lacks."""
    if release_of(cluster) is not None or owner_of(cluster) is Owner.CERT_MANAGER:
        return applied_again(cluster)
    return f"{registered(cluster)} adds it"


def covering(cluster: Cluster) -> str:
    """Return the remedy that sets the webhook rules for workload objects and Namespaces from the policy FILE."""
    manifest = f"{certs(cluster, 'manifest', '--policy=FILE')} prints the configuration"
    if release_of(cluster) is not None:
        return f"{manifest}; {upgraded(cluster, '--set-file=webhook.manifest=MANIFEST')} applies it"
    if owner_of(cluster) is Owner.CERT_MANAGER:
        return f"{manifest}, as a patch for your overlay of {overlay_of(cluster)}"
    return f"{registered(cluster, '--policy=FILE')} writes them"


def granted(cluster: Cluster, role: Role) -> str:
    """Return the remedy that grants the permissions of `role`."""
    if release_of(cluster) is not None:
        return applied_again(cluster)
    namespace = cluster.target.namespace
    other = f", with {namespace} as its namespace" if namespace != Target().namespace else ""
    return f"{command('kubectl', 'apply', '-f', f'deploy/{role.file}')} grants it{other}"


def renewal(cluster: Cluster) -> str:
    """Return the remedy for a certificate that has expired or expires soon.

    It depends on the owner of the certificate.
    """
    match owner_of(cluster):
        case Owner.CONTROLLER:
            return f"{certs(cluster, 'rotate')} renews it; else {logs(cluster)} has the reason"
        case Owner.CERT_MANAGER:
            return f"cert-manager renews it: {_described_certificate(cluster)} says why not"
        case Owner.PERSON:
            return f"{_registered_by_person(cluster)} renews it"


def new_ca(cluster: Cluster) -> str:
    """Return the remedy for a caBundle whose last CA has expired or expires soon. It depends on the owner."""
    if owner_of(cluster) is Owner.CONTROLLER:
        return f"{certs(cluster, 'rotate', '--ca')} renews it; else {logs(cluster)} has the reason"
    return trust(cluster)


def trust(cluster: Cluster) -> str:
    """Return the remedy for a caBundle that does not trust the served certificate. It depends on the owner of both."""
    match owner_of(cluster):
        case Owner.CONTROLLER:
            return f"the certs controller corrects it within seconds: {logs(cluster)} says why not"
        case Owner.CERT_MANAGER:
            cainjector = "`kubectl -n cert-manager logs deployment/cert-manager-cainjector`"
            return f"cert-manager injects the CA: {_described_certificate(cluster)} and {cainjector} say why not"
        case Owner.PERSON:
            return f"{_registered_by_person(cluster)} puts the CA there"


def _registered_by_person(cluster: Cluster) -> str:
    if release_of(cluster) is not None:
        return upgraded(cluster, "--set-file=certificates.caBundle=FILE")
    return registered(cluster)


def _described_certificate(cluster: Cluster) -> str:
    key, value = injected_from(cluster) or ("", "")
    namespace, _, name = value.rpartition("/")
    return command("kubectl", "-n", namespace, "describe", "secret" if key.endswith("-secret") else "certificate", name)
