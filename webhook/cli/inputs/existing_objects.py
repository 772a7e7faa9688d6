"""Existing objects with their pods and Events, from a live cluster or from a file."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeAlias
from urllib.parse import quote

import click

from webhook.cli.inputs.live import ask
from webhook.cli.output.terminal import echo
from webhook.cluster.cache.resources import Resource
from webhook.documents.documents import Document, JsonObject, field
from webhook.documents.field import InvalidInput, invalid, unsupported
from webhook.documents.parts import listed
from webhook.kube.names import DEFAULT_NAMESPACE
from webhook.kube.workloads.pod_template_path import WorkloadKind, group_of
from webhook.watch.api_errors import ApiServerError
from webhook.watch.api_server import NOT_FOUND, ApiServer, ClientConfig

_FLAG = "TYPE/NAME"
_MOST_CLOSE = 3
POD = Resource("Pod", "v1", "pods")
EVENT = Resource("Event", "v1", "events")
# Their short names in kubectl. Source: k8s.io/kubernetes/pkg/registry, ShortNames
_SHORT = {"po": "pods", "deploy": "deployments", "rs": "replicasets", "sts": "statefulsets", "ds": "daemonsets"}
_SHORT |= {"cj": "cronjobs", "rc": "replicationcontrollers"}
# The version of another group is the preferred one.
_API_VERSIONS = {"": "v1", "apps": "apps/v1", "batch": "batch/v1"}
# They own the pods of other objects.
_BETWEEN = (
    Resource("ReplicaSet", "apps/v1", "replicasets"),
    Resource("Job", "batch/v1", "jobs"),
    Resource("StatefulSet", "apps/v1", "statefulsets"),
)


def type_named(name: str, kinds: Iterable[WorkloadKind]) -> Resource:
    """Return the type with this name as in kubectl: resource, kind or short name, optionally with the group.

    Raises:
        InvalidInput: no type among pods and `kinds` has the name.
    """
    versions = ((each, _API_VERSIONS.get(each.group, f"{each.group}/")) for each in kinds)
    known = [POD, *(Resource(each.kind, version, each.resource) for each, version in versions)]
    wanted, _, group = name.lower().partition(".")
    for each in known:
        names = (each.plural, each.kind.lower())
        if (wanted in names or _SHORT.get(wanted) == each.plural) and group in ("", group_of(each.api_version)):
            return each
    raise InvalidInput([unsupported(_FLAG, name, sorted({each.kind.lower() for each in known}))])


def pods_of(objects: "Objects", owner: JsonObject, namespace: str) -> list[JsonObject]:
    """Return the pods that an object owns directly or through other objects. For a Pod, return this pod."""
    if owner.get("kind") == POD.kind:
        return [owner]
    owners = {field(owner, "metadata", "uid")}
    between = [each for kind in _BETWEEN for each in objects.list(kind, namespace)]
    for _ in _BETWEEN:
        owners |= {field(each, "metadata", "uid") for each in between if owners & _owner_uids(each)}
    return [each for each in objects.list(POD, namespace) if owners & _owner_uids(each)]


def top_owner(objects: "Objects", content: JsonObject, kinds: Iterable[WorkloadKind]) -> JsonObject:
    """Return the topmost controller of an object, as far as its kind is known and it can be read, or the object."""
    known = [*kinds]
    for _ in _BETWEEN:
        references = listed(content, "metadata", "ownerReferences")
        reference = next((each for each in references if each.get("controller")), None)
        if reference is None:
            break
        name = f"{field(reference, 'kind')}.{group_of(field(reference, 'apiVersion'))}"
        namespace = str(field(content, "metadata", "namespace") or DEFAULT_NAMESPACE)
        try:
            content = objects.get(type_named(name, known), namespace, str(field(reference, "name")))
        except (InvalidInput, click.ClickException):
            break
    return content


def _owner_uids(content: JsonObject) -> set[str]:
    uids = (each.get("uid") for each in listed(content, "metadata", "ownerReferences"))
    return {each for each in uids if isinstance(each, str) and each}


def events_of(objects: "Objects", pod: JsonObject) -> list[JsonObject]:
    """Return the Events of a pod in the order of their time."""
    namespace, name, uid = (field(pod, "metadata", key) for key in ("namespace", "name", "uid"))
    found = objects.list(EVENT, namespace or DEFAULT_NAMESPACE, **{"involvedObject.name": str(name)})
    own = [each for each in found if not uid or field(each, "involvedObject", "uid") in (None, "", uid)]
    return sorted(own, key=event_time)


def event_time(event: JsonObject) -> str:
    """Return the time at which an Event was seen last, or an empty string if it has none."""
    series = field(event, "series", "lastObservedTime")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or "")


class FileObjects:
    """The objects in a file."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._objects = [each.content for each in documents]

    def get(self, kind: Resource, namespace: str, name: str) -> JsonObject:
        """Return an object.

        Raises:
            InvalidInput: there is none.
        """
        found = {str(field(each, "metadata", "name")): each for each in self.list(kind, namespace)}
        if name not in found:
            raise _absent(kind, namespace, name, get_close_matches(name, found, _MOST_CLOSE))
        return found[name]

    def list(self, kind: Resource, namespace: str, **selected: str) -> Sequence[JsonObject]:
        """Return the objects of a namespace ("" for a kind without namespaces), those with this value of a field."""
        return [each for each in self._objects if self._is(each, kind, namespace, selected)]

    def _is(self, content: JsonObject, kind: Resource, namespace: str, selected: Mapping[str, str]) -> bool:
        return (
            (group_of(content.get("apiVersion")), content.get("kind")) == (group_of(kind.api_version), kind.kind)
            and namespace in ("", field(content, "metadata", "namespace") or DEFAULT_NAMESPACE)
            and all(field(content, *path.split(".")) == value for path, value in selected.items())
        )


class LiveObjects:
    """The objects of a live cluster; each request reads them anew."""

    def __init__(self, source: ClientConfig) -> None:
        self._source = source

    def get(self, kind: Resource, namespace: str, name: str) -> JsonObject:
        """Return an object.

        Raises:
            InvalidInput: there is none.
            click.ClickException: the API server does not answer the request.
        """
        try:
            found = self._read(kind, namespace, f"/{quote(name, safe='')}", {})
        except ApiServerError as error:
            if error.code != NOT_FOUND:
                raise click.ClickException(str(error)) from error
            raise _absent(kind, namespace, name) from error
        return {"apiVersion": kind.api_version, "kind": kind.kind, **found}

    def list(self, kind: Resource, namespace: str, **selected: str) -> Sequence[JsonObject]:
        """Return the objects of a namespace ("" for a kind without namespaces), those with this value of a field.

        The result is empty if they cannot be read, which is reported, or the cluster does not serve the kind.
        """
        query = {"fieldSelector": ",".join(f"{path}={value}" for path, value in selected.items())} if selected else {}
        try:
            items = self._read(kind, namespace, "", query).get("items")
        except ApiServerError as error:
            if not (kind.is_extension and error.code == NOT_FOUND):
                echo(f"not known: {kind.plural}: {error}", err=True)
            return []
        return [{"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in items or ()]

    def _read(self, kind: Resource, namespace: str, name: str, query: Mapping[str, str]) -> JsonObject:

        async def read(server: ApiServer) -> JsonObject:
            api = kind.api_version
            if api.endswith("/"):
                group = await server.get(f"/apis/{api.removesuffix('/')}", {})
                api = str(field(group, "preferredVersion", "groupVersion"))
            root = f"/apis/{api}" if "/" in api else f"/api/{api}"
            scope = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
            return await server.get(f"{root}{scope}/{kind.plural}{name}", query)

        return ask(self._source, read)


Objects: TypeAlias = FileObjects | LiveObjects


def _absent(kind: Resource, namespace: str, name: str, close: Sequence[str] = ()) -> InvalidInput:
    """Return the error of an object that does not exist, with the names that are `close` to its own."""
    detail = f"namespace {namespace} has no such object" + (f"; did you mean {', '.join(close)}?" if close else "")
    return InvalidInput([invalid(_FLAG, f"{kind.kind.lower()}/{name}", detail)])
