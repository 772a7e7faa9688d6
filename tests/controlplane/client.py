"""A client of the Kubernetes API with raw objects, without a model between a test and the API server."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import urllib3

Object = dict[str, Any]
Objects = list[Object]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a request: the object, the warnings for the user, and the id of its audit event."""

    object: Object
    warnings: list[str]
    audit_id: str


class ApiError(Exception):
    """The API server refused a request; `status` is its Status object."""

    def __init__(self, code: int, status: Object) -> None:
        self.code = code
        self.status = status
        self.reason: str = status.get("reason", "")
        self.message: str = status.get("message", "")
        super().__init__(f"{code} {self.reason}: {self.message}")


class NotFound(ApiError):  # noqa: N818 - the API's own name of it
    """There is no such object, or no such API."""


class Client:
    """Requests as one user, with a bearer `token` unless the `pool` has a certificate of its own.

    Kinds are given by name; discovery returns their paths.
    """

    def __init__(
        self, pool: urllib3.PoolManager, url: str, token: str = "", impersonated: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._pool = pool
        self._url = url
        self._token = token
        authorization = [("Authorization", f"Bearer {token}")] if token else []
        self._user_headers = (*authorization, *impersonated)
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}
        self._discovered: set[str] = set()

    def impersonating(self, user: str, groups: Iterable[str] = ()) -> "Client":
        """Return a client that acts as `user`, for what RBAC lets that one do."""
        headers = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
        return Client(self._pool, self._url, self._token, headers)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Answer:
        """Send one request and return its result.

        Raises:
            ApiError: it was refused.
        """
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json", "Content-Type": content_type})
        for name, value in self._user_headers:
            headers.add(name, value)
        given = {name: value for name, value in (query or {}).items() if value}
        response = self._pool.request(
            method,
            f"{self._url}{path}?{urlencode(given)}",
            headers=headers,
            body=None if body is None else json.dumps(body).encode(),
            retries=False,
        )
        content = _decoded(response)
        if response.status >= 400:
            raise (NotFound if response.status == 404 else ApiError)(response.status, content)
        warnings = [_warning_text(value) for value in response.headers.getlist("Warning")]
        return Answer(content, warnings, response.headers.get("Audit-Id", ""))

    def get(self, kind: str, name: str, namespace: str | None = None, *, api_version: str = "v1") -> Object:
        """Return one object."""
        return self.request("GET", self._path(api_version, kind, namespace, name)).object

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        *,
        api_version: str = "v1",
        label_selector: str = "",
        field_selector: str = "",
    ) -> Objects:
        """Return the objects of a kind, in all namespaces where none is given, each with its kind and apiVersion."""
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        answer = self.request("GET", self._path(api_version, kind, namespace), query=query)
        return [{"apiVersion": api_version, "kind": kind, **item} for item in answer.object["items"]]

    def serves(self, api_version: str, kind: str) -> bool:
        """Return whether the API server has objects of the kind in this version; older releases lack some."""
        if api_version not in self._discovered:
            with suppress(NotFound):
                self._discover(api_version)
            self._discovered.add(api_version)
        return (api_version, kind) in self._resources

    def plural(self, api_version: str, kind: str) -> str | None:
        """Return the name of the kind in paths; None if the API server has no objects of it in this version."""
        return self._resources[api_version, kind][0] if self.serves(api_version, kind) else None

    def create(self, obj: Object, *, namespace: str | None = None, dry_run: bool = False) -> Answer:
        """Create an object, in strict validation: an unknown or doubled field is refused."""
        return self.request("POST", self._path_of(obj, namespace), query=_write_options(dry_run), body=obj)

    def replace(self, obj: Object, *, namespace: str | None = None, dry_run: bool = False) -> Answer:
        """Update an object as a whole, in strict validation."""
        path = self._path_of(obj, namespace, obj["metadata"]["name"])
        return self.request("PUT", path, query=_write_options(dry_run), body=obj)

    def apply(
        self, obj: Object, *, namespace: str | None = None, dry_run: bool = False, field_manager: str = "tests"
    ) -> Answer:
        """Apply an object on the server's side, in strict validation, taking over fields of other managers."""
        return self.request(
            "PATCH",
            self._path_of(obj, namespace, obj["metadata"]["name"]),
            query=_write_options(dry_run) | {"fieldManager": field_manager, "force": "true"},
            body=obj,
            content_type="application/apply-patch+yaml",
        )

    def patch(
        self,
        kind: str,
        name: str,
        body: Object | Objects,
        *,
        namespace: str | None = None,
        api_version: str = "v1",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Answer:
        """Patch an object: a list is a JSON patch, a dict a merge patch."""
        content_type = "application/json-patch+json" if isinstance(body, list) else "application/merge-patch+json"
        path = self._path(api_version, kind, namespace, name, subresource)
        return self.request("PATCH", path, query=_write_options(dry_run), body=body, content_type=content_type)

    def delete(self, kind: str, name: str, *, namespace: str | None = None, api_version: str = "v1") -> Object | None:
        """Delete an object at once, and return the object or a Status; None if there is no object."""
        path = self._path(api_version, kind, namespace, name)
        try:
            body = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
            return self.request("DELETE", path, body=body).object
        except NotFound:
            return None

    def delete_collection(
        self, kind: str, namespace: str | None = None, *, api_version: str = "v1", label_selector: str = ""
    ) -> Objects:
        """Delete all objects of a kind, in one namespace or none, that a label selector selects; return them."""
        path = self._path(api_version, kind, namespace)
        body = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        answer = self.request("DELETE", path, query={"labelSelector": label_selector}, body=body).object
        return [{"apiVersion": api_version, "kind": kind, **item} for item in answer["items"]]

    def _path_of(self, obj: Object, namespace: str | None, name: str = "") -> str:
        within = obj["metadata"].get("namespace", namespace) or "default"
        return self._path(obj["apiVersion"], obj["kind"], within, name)

    def _discover(self, api_version: str) -> None:
        for resource in self.request("GET", _root(api_version)).object["resources"]:
            if "/" not in resource["name"]:
                self._resources[api_version, resource["kind"]] = (resource["name"], resource["namespaced"])

    def _path(self, api_version: str, kind: str, namespace: str | None, name: str = "", subresource: str = "") -> str:
        root = _root(api_version)
        if (api_version, kind) not in self._resources:
            self._discover(api_version)
        plural, namespaced = self._resources[api_version, kind]
        if name and not namespace:
            namespace = "default"
        within = f"namespaces/{namespace}/" if namespaced and namespace else ""
        return "/".join(part for part in (f"{root}/{within}{plural}", name, subresource) if part)


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _write_options(dry_run: bool) -> dict[str, str]:
    return {"fieldManager": "tests", "fieldValidation": "Strict", "dryRun": "All" if dry_run else ""}


def _decoded(response: urllib3.BaseHTTPResponse) -> Object:
    try:
        content = json.loads(response.data)
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {"message": response.data.decode(errors="replace")}


def _warning_text(value: str) -> str:
    """Return the text of a Warning header: `299 - "text"`."""
    quoted = value.partition('"')[2].removesuffix('"')
    return quoted.replace('\\"', '"').replace("\\\\", "\\")
