"""Whether Kueue evicts what it admitted if not all pods are ready, by the ConfigMap of its manager."""

from typing import Any

import pytest

from webhook.cluster.batch.kueue_configuration import pods_ready_timeout

FIRST, SECOND = ("apiVersion: config.kueue.x-k8s.io/v1beta1\n", "apiVersion: config.kueue.x-k8s.io/v1beta2\n")
ON, TIMED = "waitForPodsReady:\n  enable: true\n", "waitForPodsReady:\n  timeout: 10m\n  blockAdmission: false\n"


def config_map(text: object, release: str = "") -> dict[str, Any]:
    labels = {"app.kubernetes.io/version": release} if release else {}
    return {"metadata": {"labels": labels}, "data": {"controller_manager_config.yaml": text}}


@pytest.mark.parametrize(
    ("text", "release", "timeout"),
    [
        pytest.param(FIRST, "", "", id="v1beta1: off"),
        pytest.param(FIRST, "v0.19.2", "", id="v1beta1: off in each release"),
        pytest.param(FIRST + TIMED, "", "", id="v1beta1: a timeout alone"),
        pytest.param(FIRST + ON, "", "5m", id="v1beta1: on"),
        pytest.param(FIRST + ON + "  timeout: 90s\n", "", "90s", id="v1beta1: on, with a timeout"),
        pytest.param(SECOND, "", "", id="v1beta2: the release is not known"),
        pytest.param(SECOND, "v0.18.6", "", id="v1beta2: off before 0.19"),
        pytest.param(SECOND, "v0.19.0", "30m", id="v1beta2: on by default from 0.19 on"),
        pytest.param(SECOND, "1.0.0", "30m", id="v1beta2: and later"),
        pytest.param(SECOND + TIMED, "", "10m", id="v1beta2: with a timeout"),
        pytest.param(SECOND + TIMED.replace("10m", "0s"), "v0.19.2", "30m", id="v1beta2: zero is the default"),
        pytest.param(SECOND + TIMED.replace("10m", "soon"), "", "30m", id="v1beta2: not a duration"),
        pytest.param(
            SECOND + TIMED + "featureGates:\n  DisableWaitForPodsReady: true\n", "v0.19.2", "", id="the feature is off"
        ),
        pytest.param(TIMED, "v0.19.2", "", id="another kind of file"),
        pytest.param("{", "v0.19.2", "", id="no YAML"),
        pytest.param(None, "v0.19.2", "", id="no file"),
        pytest.param(7, "", "", id="no text"),
    ],
)
def test_time_after_which_kueue_evicts(text: object, release: str, timeout: str) -> None:
    assert pods_ready_timeout(config_map(text, release)) == timeout


def test_no_config_map_says_nothing() -> None:
    assert pods_ready_timeout({}) == ""
