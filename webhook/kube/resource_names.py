"""Names of resources, and which of them kube-scheduler counts."""

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGE_PAGES_PREFIX = "hugepages-"

_VOLUMES_PREFIX = "attachable-volumes-"
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"


def is_extended_resource(name: str) -> bool:
    """Whether `name` is a resource that a device plugin or an administrator offers, not Kubernetes itself.

    Source: k8s.io/kubernetes/pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName
    """
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_schedulable_resource(name: str) -> bool:
    """Whether kube-scheduler counts the resource at all; others it ignores.

    Source: k8s.io/kubernetes/pkg/scheduler/framework/types.go, Resource.Add, and util/utils.go, IsScalarResourceName
    """
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def is_scalar_resource(name: str) -> bool:
    """Whether the resource is an extended, a huge page, a volume or another prefixed one: all but the basic three.

    Source: k8s.io/kubernetes/pkg/scheduler/util/utils.go, IsScalarResourceName
    """
    return (
        is_extended_resource(name) or name.startswith((HUGE_PAGES_PREFIX, _VOLUMES_PREFIX)) or "kubernetes.io/" in name
    )


def may_name_device_class(name: str) -> bool:
    """Return whether devices of a DeviceClass can be requested by the resource `name`.

    Source: k8s.io/kubernetes/pkg/scheduler/util/utils.go, IsDRAExtendedResourceName
    """
    return is_extended_resource(name) or name.startswith(DEVICE_CLASS_PREFIX)


def device_class_of(name: str) -> str:
    """The DeviceClass that the resource stands for, empty where it stands for none by its name.

    Source: k8s.io/api/resource/v1/types.go, ResourceDeviceClassPrefix
    """
    return name.removeprefix(DEVICE_CLASS_PREFIX) if name.startswith(DEVICE_CLASS_PREFIX) else ""
