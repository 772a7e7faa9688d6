"""Names of resources, and which of them kube-scheduler counts."""

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
NVIDIA_GPU = "nvidia.com/gpu"
HUGE_PAGES_PREFIX = "hugepages-"

_VOLUMES_PREFIX = "attachable-volumes-"
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"


def is_extended_resource(name: str) -> bool:
    """Return true if `name` is a resource of a device plugin or an administrator, not of Kubernetes itself.

    Source: k8s.io/kubernetes/pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName
    """
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_schedulable_resource(name: str) -> bool:
    """Return true if kube-scheduler counts the resource; it ignores others.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/types.go, Resource.Add, and util/utils.go, IsScalarResourceName
    """
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def is_scalar_resource(name: str) -> bool:
    """Return true for extended resources, huge pages, attachable volumes and other prefixed resources.

    Source: k8s.io/kubernetes/pkg/scheduler/util/utils.go, IsScalarResourceName
    """
    return (
        is_extended_resource(name) or name.startswith((HUGE_PAGES_PREFIX, _VOLUMES_PREFIX)) or "kubernetes.io/" in name
    )


def may_name_device_class(name: str) -> bool:
    """Return true if a pod can request devices of a DeviceClass by the resource `name`.

    Source: k8s.io/kubernetes/pkg/scheduler/util/utils.go, IsDRAExtendedResourceName
    """
    return is_extended_resource(name) or name.startswith(DEVICE_CLASS_PREFIX)


def device_class_of(name: str) -> str:
    """Return the DeviceClass in the name of the resource, or an empty string.

    Source: k8s.io/api/resource/v1/types.go, ResourceDeviceClassPrefix
    """
    return name.removeprefix(DEVICE_CLASS_PREFIX) if name.startswith(DEVICE_CLASS_PREFIX) else ""
