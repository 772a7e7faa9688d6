"""For each alert, series with which it fires and similar ones with which it does not.

Series are in promtool's notation, one value a minute. Evaluation is after `at`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_PODS = 'name="pods.placement.maip.mxsf.io"'
_ENOUGH = "x120"


@dataclass(frozen=True, slots=True)
class Case:
    """One alert: `fires` on some series, is `quiet` on others; `labels` are some of those of what fires."""

    fires: Mapping[str, str]
    quiet: Mapping[str, str]
    at: str = "30m"
    labels: Mapping[str, str] = field(default_factory=dict)


def _counted(name: str, labels: str, at: str = "30m") -> Case:
    """Return the case of an alert on any increase of a counter."""
    metric = f"placement_webhook_{name}"
    return Case({f"{metric}{{{labels}}}": f"0+0x20 1+1{_ENOUGH}"}, {f"{metric}{{{labels}}}": f"7+0{_ENOUGH}"}, at)


def _policies(**in_force: Sequence[str]) -> dict[str, str]:
    """Return the series of the policies, NAME@REVISION, that are in force in each replica."""
    rows = [(replica, *each.split("@")) for replica, policies in in_force.items() for each in policies]
    return {
        f'placement_webhook_policy_info{{instance="{replica}",name="{name}",revision="{revision}"}}': f"1+0{_ENOUGH}"
        for replica, name, revision in rows
    }


def _at_api_server(metric: str, labels: str) -> Case:
    """Return the case of a counter of the API server, whose series begins with the first event."""
    series = f"apiserver_admission_webhook_{metric}"
    other = labels.replace(_PODS, 'name="vpa.k8s.io"')
    return Case(
        {f"{series}{{{labels}}}": f"_x25 1+0{_ENOUGH}"},
        {f"{series}{{{labels}}}": f"5+0{_ENOUGH}", f"{series}{{{other}}}": f"1+9{_ENOUGH}"},
        labels={"name": "pods.placement.maip.mxsf.io"},
    )


def _latency(metric: str, labels: str, slow: str, fast: str) -> Case:
    """Return the case of a quantile of a histogram: all observations are below `slow`, or below `fast`."""
    bounds = sorted({slow, fast, "0.001"}, key=float)

    def series(largest: str) -> dict[str, str]:
        return {
            f'{metric}_bucket{{{labels}le="{bound}"}}': f"0+{10 if float(bound) >= float(largest) else 0}{_ENOUGH}"
            for bound in bounds
        } | {f'{metric}_bucket{{{labels}le="+Inf"}}': f"0+10{_ENOUGH}"}

    return Case(series(slow), series(fast))


def _left(metric: str, days_left: int, days_enough: int) -> Case:
    """Return the case of a time of expiry; promtool's clock starts at 0."""
    series = f'{metric}{{instance="a"}}'
    day = 86400
    return Case({series: f"{days_left * day}+0{_ENOUGH}"}, {series: f"{days_enough * day}+0{_ENOUGH}"})


def _lifetime(instance: str, days_before: int, days_left: int) -> dict[str, str]:
    """Return the validity of a certificate around the start of promtool's clock."""
    prefix, day = "placement_webhook_certificate_not", 86400
    return {
        f'{prefix}_before_timestamp_seconds{{instance="{instance}"}}': f"{-days_before * day}+0{_ENOUGH}",
        f'{prefix}_after_timestamp_seconds{{instance="{instance}"}}': f"{days_left * day}+0{_ENOUGH}",
    }


def _predictions(wrong: int, right: int) -> dict[str, str]:
    metric = "placement_webhook_predictions_total"
    return {
        f'{metric}{{result="predicted_feasible_but_pending"}}': f"0+{wrong}{_ENOUGH}",
        f'{metric}{{result="same_node"}}': f"0+{right}{_ENOUGH}",
    }


def _fragmented(share: float, free: int) -> dict[str, str]:
    labels = 'pool="training",product="NVIDIA-H20"'
    return {
        f"placement_webhook_unusable_free_cards_share{{{labels}}}": f"{share}+0{_ENOUGH}",
        f"placement_webhook_free_cards{{{labels}}}": f"{free}+0{_ENOUGH}",
    }


def _held(cards: int) -> dict[str, str]:
    labels = 'reason="image-pull",resource="nvidia.com/gpu"'
    return {f"placement_webhook_held_cards{{{labels}}}": f"{cards}+0{_ENOUGH}"}


_NOT_AFTER = "placement_webhook_certificate_not_after_timestamp_seconds"
_ROTATION = "placement_webhook_certs_controller_rotation_in_progress"
_MENDED = 'placement_webhook_certs_controller_actions_total{action="mend_ca_bundle"'
_UP = 'up{job="placement-webhook",instance="a"}'

CASES: Mapping[str, Case] = {
    "PlacementWebhookDown": Case({_UP: f"0+0{_ENOUGH}"}, {_UP: f"1+0{_ENOUGH}"}),
    "PlacementWebhookReplicaDown": Case(
        {_UP: f"0+0{_ENOUGH}"}, {_UP: f"1x20 0x5 1+0{_ENOUGH}"}, labels={"instance": "a"}
    ),
    "PlacementWebhookFailingOpen": _at_api_server("fail_open_count", f'{_PODS},type="admit"'),
    "PlacementWebhookFailingClosed": _at_api_server(
        "rejection_count", f'{_PODS},type="admit",error_type="calling_webhook_error"'
    ),
    "PlacementWebhookMissedPods": Case(
        {"placement_webhook_missed_pods": f"3+0{_ENOUGH}"}, {"placement_webhook_missed_pods": f"0+0{_ENOUGH}"}
    ),
    "PlacementWebhookSlow": _latency("placement_webhook_admission_duration_seconds", "", "2.5", "0.5"),
    "PlacementWebhookSlowForApiServers": _latency(
        "apiserver_admission_webhook_admission_duration_seconds", f"{_PODS},", "10", "1"
    ),
    "PlacementWebhookOverloaded": _counted("http_refused_requests_total", 'code="503"'),
    "PlacementWebhookInternalErrors": _counted("admission_requests_total", 'outcome="Error",workload_type=""'),
    "PlacementWebhookCertificateExpiresSoon": Case(
        _lifetime("a", 352, 13),
        # One of 30 days is renewed when ten are left.
        _lifetime("a", 350, 15) | _lifetime("b", 17, 13),
    ),
    "PlacementWebhookCertificateInvalid": _left(_NOT_AFTER, 0, 1),
    "PlacementWebhookCertificateNotReloaded": Case(
        {'placement_webhook_certificate_reloads_total{result="failure"}': f"0+12{_ENOUGH}"},
        {'placement_webhook_certificate_reloads_total{result="failure"}': f"0+0x20 1+0{_ENOUGH}"},
        at="60m",
    ),
    "PlacementWebhookCAExpiresSoon": _left("placement_webhook_ca_not_after_timestamp_seconds", 29, 31),
    "PlacementWebhookCertsControllerFailing": _counted("certs_controller_failures_total", 'instance="c"', at="60m"),
    "PlacementWebhookRotationStuck": Case(
        # The controller was restarted meanwhile.
        {f'{_ROTATION}{{instance="c"}}': "1+0x70 _x80", f'{_ROTATION}{{instance="d"}}': f"_x70 1+0{_ENOUGH}"},
        {f'{_ROTATION}{{instance="c"}}': f"1+0x60 0x20 1+0{_ENOUGH}"},
        at="150m",
    ),
    "PlacementWebhookCABundleContested": Case(
        {f'{_MENDED},result="done"}}': f"0+0.5{_ENOUGH}"},
        {f'{_MENDED},result="done"}}': f"0+0x40 4+0{_ENOUGH}", f'{_MENDED},result="conflict"}}': f"0+1{_ENOUGH}"},
        at="90m",
    ),
    "PlacementWebhookPolicyRejected": Case(
        {"placement_webhook_policy_rejected": f"1+0{_ENOUGH}"}, {"placement_webhook_policy_rejected": f"0+0{_ENOUGH}"}
    ),
    "PlacementWebhookExportedPolicyNotInStep": Case(
        {"placement_webhook_exported_policy_in_step": f"0+0{_ENOUGH}"},
        {"placement_webhook_exported_policy_in_step": f"1+0{_ENOUGH}"},
    ),
    "PlacementWebhookPoliciesDiffer": Case(
        _policies(a=("default@1", "team-a@2"), b=("default@1", "team-a@3"), c=("default@1",)),
        _policies(a=("default@1", "team-a@2"), b=("default@1", "team-a@2")),
        labels={"name": "team-a", "revision": "2"},
    ),
    "PlacementWebhookViewStale": Case(
        {'placement_webhook_cluster_age_seconds{instance="a"}': " ".join(["Inf"] * 60)},
        {
            'placement_webhook_cluster_age_seconds{instance="a"}': f"36+0{_ENOUGH}",
            'placement_webhook_cluster_age_seconds{instance="b"}': " ".join(["NaN"] * 60),
        },
        labels={"instance": "a"},
    ),
    "PlacementWebhookViewFaults": _counted("feed_faults_total", 'instance="a"'),
    "PlacementWebhookWrongPredictions": Case(_predictions(2, 8), _predictions(1, 19), at="100m"),
    "PlacementWebhookInfeasiblePodsBound": _counted("predictions_total", 'result="predicted_infeasible_but_bound"'),
    "PlacementWebhookCardsFragmented": Case(
        _fragmented(0.6, 40), _fragmented(0.4, 40), at="90m", labels={"pool": "training", "product": "NVIDIA-H20"}
    ),
    "PlacementWebhookCardsHeld": Case(
        _held(8), _held(7), at="90m", labels={"reason": "image-pull", "resource": "nvidia.com/gpu"}
    ),
    "PlacementWebhookAuditRecordsLost": _counted("audit_records_total", 'result="failed",instance="a"'),
    "PlacementWebhookAuditFilesDroppedEarly": _counted("audit_dropped_files_total", 'reason="size",instance="a"'),
    "PlacementWebhookEventsFailing": _counted("events_total", 'result="failed",instance="a"', at="60m"),
}
