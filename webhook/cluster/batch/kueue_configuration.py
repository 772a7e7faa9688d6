"""The configuration of Kueue's manager: the time after which Kueue evicts a gang that has started only in part."""

import re
from collections.abc import Mapping
from typing import Any

from webhook.documents.documents import field
from webhook.documents.parts import file_in

_FILE = "controller_manager_config.yaml"
_FIRST, _SECOND = "config.kueue.x-k8s.io/v1beta1", "config.kueue.x-k8s.io/v1beta2"
_DEFAULT_TIMEOUTS = {_FIRST: "5m", _SECOND: "30m"}
# The chart of Kueue sets it; the manifests of a release do not.
_VERSION_LABEL = "app.kubernetes.io/version"
_ON_BY_DEFAULT = (0, 19)
_DURATION = re.compile(r"(?:\d{1,9}(?:\.\d{1,3})?(?:h|m|s|ms)){1,4}")
_ZERO = re.compile(r"[0.hms]+")


def pods_ready_timeout(config_map: Mapping[str, Any]) -> str:
    """Return the time after which Kueue evicts a workload unless all of its pods are ready, as `5m`.

    The result is empty if Kueue never evicts it, or if the ConfigMap does not set a time. Feature gates that are set by
    flags are not considered.

    Source: sigs.k8s.io/kueue/apis/config/v1beta1/defaults.go, v1beta2/defaults.go; pkg/util/waitforpodsready
    """
    content = file_in(config_map, _FILE)
    version: Any = content.get("apiVersion")
    waits: Any = content.get("waitForPodsReady")
    if version not in _DEFAULT_TIMEOUTS or field(content, "featureGates", "DisableWaitForPodsReady") is True:
        return ""
    if version == _FIRST:
        waits = waits if field(waits, "enable") is True else None
    elif _release(config_map) >= _ON_BY_DEFAULT:
        waits = waits or {}
    timeout = field(waits, "timeout")
    is_set = isinstance(timeout, str) and _DURATION.fullmatch(timeout) and not _ZERO.fullmatch(timeout)
    return "" if waits is None else timeout if is_set else _DEFAULT_TIMEOUTS[version]


def _release(config_map: Mapping[str, Any]) -> tuple[int, int]:
    """Return the minor release of Kueue, or (0, 0) if it is not known."""
    label = field(config_map, "metadata", "labels", _VERSION_LABEL)
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})", label) if isinstance(label, str) else None
    return (int(found[1]), int(found[2])) if found else (0, 0)
