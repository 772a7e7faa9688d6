"""One or more objects of each of OPTIONAL_KINDS, as an API server takes them."""

from typing import Any

from webhook.cluster.optional_kinds import OPTIONAL_KINDS

Object = dict[str, Any]


def optional_objects(namespace: str, variant: str = "1") -> list[Object]:
    """Return an object of each kind; those of another `variant` have the same names and say something else."""
    return [_with_group(kind, namespace, content) for kind, content in _contents(variant).items()]


def _with_group(kind: str, namespace: str, content: Object) -> Object:
    is_of_cluster = kind in (
        "PersistentVolume",
        "StorageClass",
        "CSINode",
        "CSIDriver",
        "VolumeAttachment",
        "DeviceClass",
        "ResourceSlice",
        "DeviceTaintRule",
        "PriorityClass",
        "RuntimeClass",
    )
    metadata = {"name": f"optional-{kind.lower()}"} | ({} if is_of_cluster else {"namespace": namespace})
    return {"apiVersion": OPTIONAL_KINDS[kind].api_version, "kind": kind, "metadata": metadata, **content}


def _contents(variant: str) -> dict[str, Object]:
    labels = {"app": f"web-{variant}"}
    selector = {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "a:1"}]}}
    devices = {"devices": {"requests": [{"name": f"gpu-{variant}", "exactly": {"deviceClassName": "gpu"}}]}}
    return {
        "Service": {"spec": {"selector": labels, "ports": [{"port": 80}]}},
        "ReplicationController": {"spec": {"replicas": 0, "selector": labels, "template": template}},
        "ReplicaSet": {"spec": {"replicas": 0, "selector": selector, "template": template}},
        "StatefulSet": {"spec": {"replicas": 0, "serviceName": "s", "selector": selector, "template": template}},
        "PersistentVolumeClaim": {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "resources": {"requests": {"storage": f"{variant}Gi"}},
            }
        },
        "PersistentVolume": {
            "spec": {
                "capacity": {"storage": f"{variant}Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "fast",
                "csi": {"driver": "disk.example.com", "volumeHandle": f"handle-{variant}"},
            }
        },
        "StorageClass": {"provisioner": f"disk-{variant}.example.com", "volumeBindingMode": "WaitForFirstConsumer"},
        "CSINode": {
            "spec": {
                "drivers": [{"name": "disk.example.com", "nodeID": "n", "allocatable": {"count": int(variant)}}],
            }
        },
        "CSIDriver": {"spec": {"storageCapacity": variant == "1"}},
        "CSIStorageCapacity": {
            "storageClassName": "fast",
            "nodeTopology": {"matchLabels": {"zone": "a"}},
            "capacity": f"{variant}Gi",
        },
        "VolumeAttachment": {
            "spec": {
                "attacher": "disk.example.com",
                "nodeName": f"node-{variant}",
                "source": {"persistentVolumeName": "optional-persistentvolume"},
            }
        },
        "DeviceClass": {"spec": {"extendedResourceName": f"example.com/gpu-{variant}"}},
        "ResourceClaim": {"spec": devices},
        "ResourceClaimTemplate": {"spec": {"spec": devices}},
        "ResourceSlice": {
            "spec": {
                "driver": "gpu.example.com",
                "pool": {"name": "n", "generation": int(variant), "resourceSliceCount": 1},
                "allNodes": True,
                "devices": [
                    {
                        "name": "gpu-0",
                        "attributes": {"model": {"string": f"model-{variant}"}},
                        "capacity": {"memory": {"value": f"{variant}Gi"}},
                    }
                ],
            }
        },
        "DeviceTaintRule": {
            "spec": {
                "deviceSelector": {"driver": "gpu.example.com"},
                "taint": {"key": "broken", "value": variant, "effect": "NoSchedule"},
            }
        },
        "PriorityClass": {"value": int(variant)},
        "RuntimeClass": {"handler": "kata", "overhead": {"podFixed": {"cpu": f"{variant}m"}}},
        "PodDisruptionBudget": {
            "spec": {"minAvailable": int(variant), "selector": selector},
            "status": {
                **dict.fromkeys(("currentHealthy", "desiredHealthy", "expectedPods"), 2),
                "disruptionsAllowed": int(variant),
            },
        },
        "LimitRange": {"spec": {"limits": [{"type": "Container", "max": {"cpu": variant}}]}},
        "ResourceQuota": {
            "spec": {"hard": {"pods": "1"}, "scopes": ["CrossNamespacePodAffinity"]},
            "status": {"hard": {"pods": "1"}, "used": {"pods": str(2 - int(variant))}},
        },
    }
