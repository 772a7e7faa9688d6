"""The commands of remedies, with the names of the installation. Pure.

A word in capitals, such as FILE, stands for what the reader has to choose.
"""

import shlex
from collections.abc import Iterable, Mapping

import orjson

from certs.registration import Target
from webhook.doctor.arguments import option
from webhook.doctor.certificate_owner import Owner, controller_of, injected_from, owner_of, secret_of
from webhook.doctor.finding import MOST_NAMED
from webhook.doctor.installation import Installation, JsonObject, Role, name_of, texts
from webhook.doctor.node_facts import NodeFacts
from webhook.kube.documents import field

CONTROLLER = "placement-webhook-certs"
_RELEASE = "meta.helm.sh/release-name"


def command(*words: str) -> str:
    """Return a command for a shell, in backticks."""
    return f"`{shlex.join(words)}`"


def kubectl(installation: Installation, *words: str) -> str:
    """Return a command of kubectl in the namespace of the webhook."""
    return command("kubectl", "-n", installation.target.namespace, *words)


def logs(installation: Installation) -> str:
    """Return the command that prints the log of the certs controller."""
    return kubectl(installation, "logs", f"deployment/{controller_name(installation)}")


def controller_name(installation: Installation) -> str:
    """Return the name of the Deployment of the certs controller."""
    found = controller_of(installation)
    return str(field(found, "metadata", "name")) if found is not None else CONTROLLER


def patched(installation: Installation, fields: Mapping[str, object]) -> str:
    """Return the command that sets fields of the webhook configuration, by their paths."""
    return patched_object("mutatingwebhookconfiguration", installation.target.configuration, fields)


def patched_object(kind: str, name: str, fields: Mapping[str, object], namespace: str | None = None) -> str:
    """Return the command that sets fields of an object, by their paths; they may be missing."""
    operations = orjson.dumps([{"op": "add", "path": path, "value": value} for path, value in fields.items()]).decode()
    scope = ("-n", namespace) if namespace is not None else ()
    return command("kubectl", *scope, "patch", kind, name, "--type=json", "-p", operations)


def rotated(installation: Installation, *flags: str) -> str:
    """Return the command that requests new certificates from the certs controller."""
    secret = secret_of(installation)
    named = _flags(installation, ("namespace", "configuration"))
    return command(
        "placement-webhook",
        "certs",
        "rotate",
        *flags,
        *named,
        *([f"--secret={secret}"] if secret != Target().secret else []),
    )


def registered(installation: Installation, *flags: str) -> str:
    """Return the command that writes certificates to the Secret and their CA to the caBundle."""
    return command("placement-webhook", "certs", "register", *flags, *_register_flags(installation))


def generated(installation: Installation, *flags: str) -> str:
    """Return the command that prints the webhook configuration."""
    return command(
        "placement-webhook",
        "certs",
        "manifest",
        *flags,
        *_flags(installation, ("namespace", "service", "configuration")),
        *_url_flag(installation),
    )


def applied_again(installation: Installation) -> str:
    """Return how the manifests of this installation are applied again: by Helm if it has a release of it."""
    release = release_of(installation)
    if release is not None:
        return f"{upgraded(installation)} applies the chart again"
    return f"{command('kubectl', 'apply', '-k', overlay_of(installation))}, or your own overlay, applies it again"


def on_nodes(nodes: Iterable[NodeFacts], *words: str) -> str:
    """Return a command of kubectl on the first nodes; the first two of `words` come before their names."""
    names = [each.name for each in nodes][:MOST_NAMED]
    return command("kubectl", *words[:2], *names, *words[2:])


def into_pool(nodes: Iterable[NodeFacts], key: str) -> str:
    """Return the commands that label and taint nodes for the pool POOL."""
    those = list(nodes)
    labelled = on_nodes(those, "label", "node", f"{key}=POOL", "--overwrite")
    return f"{labelled} and {on_nodes(those, 'taint', 'node', f'{key}=POOL:NoSchedule', '--overwrite')}"


def servers(installation: Installation, *words: str) -> str:
    """Return a command of kubectl on the workload of the servers."""
    name = short_name(installation.deployment or {}) or Target().service
    return kubectl(installation, *words, f"{installation.deployment_kind.lower()}/{name}")


def registered_again(installation: Installation) -> str:
    """Return how the webhook configuration gets what it lacks of its manifest."""
    if release_of(installation) is not None or owner_of(installation) is Owner.CERT_MANAGER:
        return applied_again(installation)
    return f"{registered(installation, *_directory_flag(installation))} adds it"


def covering(installation: Installation) -> str:
    """Return how the webhooks for workload objects and Namespaces get the rules of the policy in FILE."""
    manifest = f"{generated(installation, '--policy=FILE')} prints the configuration"
    if release_of(installation) is not None:
        return f"{manifest}; {upgraded(installation, '--set-file=webhook.manifest=MANIFEST')} applies it"
    if owner_of(installation) is Owner.CERT_MANAGER:
        return f"{manifest}, as a patch for your overlay of {overlay_of(installation)}"
    return f"{registered(installation, '--policy=FILE', *_directory_flag(installation))} writes them"


def granted(installation: Installation, role: Role) -> str:
    """Return the remedy that grants the rights of `role`."""
    if release_of(installation) is not None:
        return f"{upgraded(installation)} applies the chart again"
    applied = command("kubectl", "apply", "-f", f"deploy/{role.file}")
    if installation.target.namespace == Target().namespace:
        return f"{applied} grants it"
    return f"{applied} grants it, with {installation.target.namespace} as its namespace"


def upgraded(installation: Installation, *flags: str) -> str:
    """Return the command that applies the chart, which can be newer than that of the release, with its values.

    With `--reuse-values`, values that the chart has got since would be missing.
    """
    release = release_of(installation) or Target().service
    namespace = installation.target.namespace
    return command("helm", "upgrade", release, "deploy/chart", "-n", namespace, "--reset-then-reuse-values", *flags)


def release_of(installation: Installation) -> str | None:
    """Return the name of the Helm release that has made the webhook; None without one."""
    for each in (installation.configuration, installation.deployment, controller_of(installation)):
        found = texts(each or {}, "metadata", "annotations").get(_RELEASE)
        if found:
            return found
    return None


def overlay_of(installation: Installation) -> str:
    """Return the shipped overlay of deploy/ that is most like this installation."""
    owner = owner_of(installation)
    if option(installation.deployment or {}, "--policy-source") == "crd":
        return "deploy/overlays/crd"
    if owner is Owner.CERT_MANAGER:
        return "deploy/overlays/cert-manager"
    if owner is Owner.PERSON:
        return "deploy/base"
    return f"deploy/overlays/{'templates' if _mutates_templates(installation) else 'self-managed'}"


def renewal(installation: Installation) -> str:
    """Return the remedy for a certificate that has expired, or soon will, by its owner."""
    match owner_of(installation):
        case Owner.CONTROLLER:
            return f"{rotated(installation)} renews it; else {logs(installation)} has the reason"
        case Owner.CERT_MANAGER:
            return f"cert-manager renews it: {_described_certificate(installation)} says why not"
        case Owner.PERSON:
            return f"{_registered_by_person(installation)} renews it"


def new_ca(installation: Installation) -> str:
    """Return the remedy for a caBundle whose last CA has expired, or soon will, by its owner."""
    if owner_of(installation) is Owner.CONTROLLER:
        return f"{rotated(installation, '--ca')} renews it; else {logs(installation)} has the reason"
    return trust(installation)


def trust(installation: Installation) -> str:
    """Return the remedy for a caBundle that does not trust the served certificate, by the owner of both."""
    match owner_of(installation):
        case Owner.CONTROLLER:
            return f"the certs controller corrects it within seconds: {logs(installation)} says why not"
        case Owner.CERT_MANAGER:
            return (
                f"cert-manager injects the CA: {_described_certificate(installation)} and "
                "`kubectl -n cert-manager logs deployment/cert-manager-cainjector` say why not"
            )
        case Owner.PERSON:
            return f"{_registered_by_person(installation)} puts the CA there"


def _registered_by_person(installation: Installation) -> str:
    if release_of(installation) is not None:
        return upgraded(installation, "--set-file=certificates.caBundle=FILE")
    return registered(installation, *_directory_flag(installation))


def _directory_flag(installation: Installation) -> list[str]:
    """Return the flag for the files of a server that is not behind a Service: it does not mount the Secret."""
    return ["--dir=DIR"] if installation.webhooks and not installation.is_called_by_service else []


def _described_certificate(installation: Installation) -> str:
    key, value = injected_from(installation) or ("", "")
    namespace, _, name = value.rpartition("/")
    kind = "secret" if key.endswith("-secret") else "certificate"
    return command("kubectl", "-n", namespace, "describe", kind, name)


def _register_flags(installation: Installation) -> list[str]:
    secret = secret_of(installation)
    return [
        *_flags(installation, ("namespace", "service", "configuration")),
        *([f"--secret={secret}"] if secret != Target().secret else []),
        *_url_flag(installation),
    ]


def _url_flag(installation: Installation) -> list[str]:
    urls = [field(each, "clientConfig", "url") for each in installation.webhooks]
    return [f"--url={urls[0]}"] if urls and isinstance(urls[0], str) else []


def _flags(installation: Installation, names: Iterable[str]) -> list[str]:
    """Return the flags for the names that are not the default ones."""
    given: Mapping[str, str] = {name: getattr(installation.target, name) for name in names}
    return [f"--{name}={value}" for name, value in given.items() if value != getattr(Target(), name)]


def _mutates_templates(installation: Installation) -> bool:
    return installation.policy.spec.workload_objects.mutate_templates


def short_name(content: JsonObject) -> str:
    """Return the name of an object, without its namespace."""
    return name_of(content).rpartition("/")[2]
