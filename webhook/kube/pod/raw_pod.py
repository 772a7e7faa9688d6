"""The parts of a pod as JSON, which are decoded when they are read.

Most of a pod is never read: `managedFields`, environments, commands. Decoding it into Python objects would cost more
than all else that is done with a pod whose facts are known.
"""

from typing import Final

from msgspec import Raw, Struct, ValidationError
from msgspec.json import Decoder, decode

MISSING: Final = Raw()
# The volumes that every pod can have on every node; the API server adds one with a random name.
PLAIN_VOLUME_KEYS: Final = frozenset({"name", "configMap", "downwardAPI", "emptyDir", "projected", "secret"})
_TOKEN_VOLUME: Final = b'"kube-api-access-'


class RawMetadata(Struct, frozen=True, gc=False, rename="camel"):
    """The metadata of a pod."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: Raw = MISSING
    labels: Raw = MISSING
    annotations: Raw = MISSING
    owner_references: Raw = MISSING
    finalizers: Raw = MISSING


class RawPod(Struct, frozen=True, gc=False):
    """A pod whose metadata and spec are objects."""

    metadata: RawMetadata
    spec: dict[str, Raw]
    status: Raw = MISSING


class RawContainer(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """What a scheduler reads of a container."""

    name: Raw = MISSING
    image: Raw = MISSING
    ports: Raw = MISSING
    resources: Raw = MISSING
    restart_policy: Raw = MISSING
    restart_policy_rules: Raw = MISSING


class _Owner(Struct, frozen=True, gc=False):
    uid: str = ""
    controller: bool | None = None


_OWNERS: Final = Decoder(list[_Owner] | None)
_VOLUMES: Final = Decoder(list[dict[str, Raw]] | None)


class RawVolumes(Struct, frozen=True, gc=False):
    """The fields of each volume that not every node has, and the volume of the service account token.

    The name of the latter is random. It is empty without one.
    """

    restricting: tuple[dict[str, Raw], ...] = ()
    token: str = ""

    @classmethod
    def of(cls, volumes: Raw) -> "RawVolumes":
        """Read the volumes of a pod.

        Raises:
            ValidationError: they are no list of objects.
        """
        restricting: list[dict[str, Raw]] = []
        token = ""
        for volume in _VOLUMES.decode(volumes) or ():
            if not volume.keys() <= PLAIN_VOLUME_KEYS:
                restricting.append(volume)
            elif not token and bytes(volume.get("name", b"")).startswith(_TOKEN_VOLUME):
                token = decode(volume["name"], type=str)
        return cls(tuple(restricting), token)


NO_RAW_VOLUMES: Final = RawVolumes()


def controller_uid(owner_references: Raw) -> str:
    """Return the UID of the controller; empty without one."""
    if owner_references:
        try:
            owners = _OWNERS.decode(owner_references)
        except ValidationError:
            return ""
        for owner in owners or ():
            if owner.controller:
                return str(owner.uid)
    return ""
