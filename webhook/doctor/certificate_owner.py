"""Who issues the certificate of an installation and maintains the caBundle. Pure."""

from enum import Enum

from cryptography import x509

from certs.registration import INJECTED_BY_CERT_MANAGER
from certs.rotation.secret import OWNER
from webhook.doctor.arguments import args_of, containers_of, option
from webhook.doctor.installation import Installation, JsonObject, listed, texts
from webhook.doctor.source import Source
from webhook.kube.documents import field

_LABELS = {"app.kubernetes.io/name": "placement-webhook", "app.kubernetes.io/component": "certs"}


class Owner(Enum):
    """The owners: the certs controller, cert-manager, or a person with own files or `certs register`."""

    CONTROLLER = "certs controller"
    CERT_MANAGER = "cert-manager"
    PERSON = "person"


def owner_of(installation: Installation) -> Owner:
    """Return the owner of the certificate, by annotations, the Deployment of the controller, and who wrote caBundle."""
    if injected_from(installation) is not None:
        return Owner.CERT_MANAGER
    if controller_of(installation) is not None or _writer(installation.configuration or {}).startswith(OWNER):
        return Owner.CONTROLLER
    return Owner.PERSON


def injected_from(installation: Installation) -> tuple[str, str] | None:
    """Return annotation and value by which cert-manager injects the CA, such as `NAMESPACE/CERTIFICATE`."""
    annotations = texts(installation.configuration or {}, "metadata", "annotations")
    return next(((key, annotations[key]) for key in INJECTED_BY_CERT_MANAGER if key in annotations), None)


def controller_of(installation: Installation) -> JsonObject | None:
    """Return the Deployment of the certs controller; None if there is none, or it was not read."""
    for each in installation.of(Source.DEPLOYMENTS):
        if field(each, "metadata", "namespace") == installation.target.namespace and _is_controller(each):
            return each
    return None


def secret_of(installation: Installation) -> str:
    """Return the name of the Secret with the certificate."""
    named = option(controller_of(installation) or {}, "--secret")
    if named is not None:
        return named
    directory = option(installation.deployment or {}, "--tls-dir")
    mounts = {
        mount.get("name")
        for container in containers_of(installation.deployment or {})
        for mount in listed(container, "volumeMounts")
        if directory is not None and str(mount.get("mountPath")).rstrip("/") == directory.rstrip("/")
    }
    for volume in listed(installation.deployment or {}, "spec", "template", "spec", "volumes"):
        name = field(volume, "secret", "secretName")
        if volume.get("name") in mounts and isinstance(name, str):
            return name
    return installation.target.secret


def first_to_expire(installation: Installation) -> x509.Certificate | None:
    """Return the served certificate that expires first; None if no server is reached from here."""
    served = (each.certificate for probe in installation.probes for each in probe.called if each is not None)
    return min((each for each in served if each is not None), key=lambda each: each.not_valid_after_utc, default=None)


def _is_controller(deployment: JsonObject) -> bool:
    labels = texts(deployment, "spec", "template", "metadata", "labels")
    return labels.items() >= _LABELS.items() or any(
        args_of(each)[:2] == ["certs", "controller"] for each in containers_of(deployment)
    )


def _writer(configuration: JsonObject) -> str:
    """Return the field manager that wrote a caBundle last; empty if it is not known.

    Source: k8s.io/apimachinery/pkg/apis/meta/v1/types.go, ManagedFieldsEntry
    """
    writers = [
        (str(each.get("time") or ""), str(each.get("manager") or ""))
        for each in listed(configuration, "metadata", "managedFields")
    ]
    return max(writers, default=("", ""))[1]
