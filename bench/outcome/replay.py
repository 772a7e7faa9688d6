"""Replay on a real control plane: the pods pass our webhook and the real kube-scheduler binds them."""

from pathlib import Path
from typing import Any

import yaml

from bench.bursts.burst import settled
from bench.outcome.arrivals import Trace, TracePod
from bench.outcome.configurations import Configuration
from bench.outcome.figures import Figures, figures
from bench.outcome.fragmentation import mix_of
from tests.controlplane.cluster import Cluster
from tests.support.on_cluster.webhooks import Webhooks, serving

_FILES = Path(__file__).parents[2] / "deploy" / "scheduler"

# Enough to log the nodes that the scheduler knows. Scores of every node would be hundreds of megabytes.
_VERBOSITY = 4


def replayed(
    cluster: Cluster, folder: Path, trace: Trace, configuration: Configuration, seed: int, steps: tuple[float, ...]
) -> list[Figures]:
    """Return the figures of each of the `steps`, shares of the GPUs that the pods have requested until then.

    One client creates the pods one after the other, as fast as the API server answers. The state is read once the
    scheduler has decided on all of them. Configurations with a file of deploy/scheduler get a kube-scheduler with that
    file, and the webhook is its scheduler extender if the file has one; the others a kube-scheduler without a file.
    """
    mix = mix_of(trace.shapes)
    pods: list[TracePod] = []
    result = []
    with serving(cluster.control_plane, folder, extender_profile=configuration.extender_profile) as webhooks:
        scheduler = _scheduler_configuration(configuration, webhooks, folder)
        cluster.control_plane.start_scheduler(scheduler, verbosity=_VERBOSITY)
        cluster.make_nodes(*trace.nodes)
        webhooks.register(cluster, len(trace.nodes))
        for step, arriving in zip(steps, trace.arrivals(seed, steps), strict=True):
            for pod in arriving:
                cluster.client.create(configuration.pod(pod), namespace=cluster.namespace)
            pods += arriving
            nodes = {name: node for name, node in settled(cluster, len(pods)).items() if node}
            result.append(figures(trace, mix, step, pods, nodes))
    return result


def _scheduler_configuration(configuration: Configuration, webhooks: Webhooks, folder: Path) -> dict[str, Any]:
    if not configuration.file:
        return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    content: dict[str, Any] = yaml.safe_load((_FILES / configuration.file).read_text())
    for extender in content.get("extenders", ()):
        extender["urlPrefix"] = f"https://127.0.0.1:{webhooks.port}/extender"
        extender["tlsConfig"] = {"caFile": str(folder / "ca.crt"), "serverName": "localhost"}
    return content
