"""The certs controller, whose Secret is mounted for replicas of `serve`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.rotation import Installation, controller_flags
from bench.running.mounted_secret import mounted
from certs.registration import Target
from tests.controlplane.cluster import Cluster
from tests.controlplane.polling import wait_for
from tests.support.servers.processes import ended, start_program

# As `Cluster.register_webhook` names it.
_CONFIGURATION = "placement-webhook"


@contextmanager
def certificates_kept(cluster: Cluster, folder: Path) -> Iterator[Installation]:
    """Run the certs controller, whose Secret is mounted at `tls` in `folder`, until the block ends."""
    target = Target(cluster.namespace, configuration=_CONFIGURATION, url="https://127.0.0.1/mutate")
    installation = Installation(cluster, target, 0, folder / "controller.log")
    process = start_program(installation.log, *controller_flags(installation))
    with ended(process, installation.log), mounted(installation.secret, folder / "tls", 0.0):
        wait_for((folder / "tls" / "tls.crt").exists, "the certificate of the controller")
        yield installation
