"""Read and write the Secret and the webhook configurations by PATCH on a name, which a Role can restrict."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote

from certs.registration import FIELD_MANAGER, Target
from webhook.documents.documents import JsonObject
from webhook.watch.api_errors import ApiServerError, UnreachableError, is_accepted
from webhook.watch.api_server import CONFLICT, NOT_FOUND, ApiServer, ClientConfig

TOO_MANY_REQUESTS = 429
_BUSY = (TOO_MANY_REQUESTS, 503)
# The pause that an API server asks for when it limits requests.
_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ObjectName:
    """The name of an object, and the path of its collection."""

    collection: str
    name: str

    @property
    def path(self) -> str:
        """Return the path of the object."""
        return f"{self.collection}/{quote(self.name, safe='')}"


def secret_of(target: Target) -> ObjectName:
    """Return the name of the Secret."""
    return ObjectName(f"/api/v1/namespaces/{quote(target.namespace, safe='')}/secrets", target.secret)


def configuration_named(name: str) -> ObjectName:
    """Return the name of a MutatingWebhookConfiguration."""
    return ObjectName("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", name)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The objects behind one connection.

    `manager` is the field manager of writes. With `dry_run`, nothing is stored.
    """

    api: ApiServer
    manager: str = FIELD_MANAGER
    dry_run: bool = False

    async def read(self, name: ObjectName) -> JsonObject | None:
        """Return the object, or None if it does not exist. If the API server is busy, retry once.

        Raises:
            ApiServerError: the API server does not answer or rejects the request.
        """
        try:
            return await self.api.find(name.path)
        except ApiServerError as error:
            if error.code not in _BUSY:
                raise
        await asyncio.sleep(_RETRY_SECONDS)
        return await self.api.find(name.path)

    async def apply(self, name: ObjectName, content: JsonObject, *, manager: str = "", force: bool = False) -> None:
        """Create the object, or change the fields that `manager` owns. `force` takes over fields of other managers.

        Raises:
            ApiServerError: the API server does not answer or rejects the request. The code is 409 if a field has
                another manager.
        """
        forced = {"force": "true"} if force else {}
        await self.api.apply(name.path, content, self._query(manager or self.manager) | forced)

    async def change(self, name: ObjectName, patch: JsonObject | list[JsonObject]) -> bool:
        """Apply an RFC 7386 or RFC 6902 patch with a resourceVersion. Return False if the object has changed since.

        Such a patch does not make us a manager by apply, so `kubectl apply` of the manifest without caBundle keeps the
        caBundle.

        Raises:
            ApiServerError: the API server does not answer or rejects the request.
        """
        return await is_accepted(self.api.patch(name.path, patch, self._query(self.manager)), CONFLICT, NOT_FOUND)

    def _query(self, manager: str) -> dict[str, str]:
        return {"fieldManager": manager} | ({"dryRun": "All"} if self.dry_run else {})


@asynccontextmanager
async def connected(source: ClientConfig, *, dry_run: bool = False) -> AsyncIterator[Cluster]:
    """Yield the cluster of `source`. If the API server does not answer, the error in the block names it.

    Raises:
        InvalidInput: the kubeconfig is missing or invalid, or this is not a pod with a service account.
    """
    async with source.connect() as api:
        try:
            yield Cluster(api, dry_run=dry_run)
        except UnreachableError as error:
            raise UnreachableError(f"{api.cluster.rpartition(', ')[2]}: {error}") from error
