"""What `check`, `mutate` and `capacity` print of pods that the webhook leaves alone, and of invalid ones."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.admission import TYPE
from tests.support.builders import PodBuilder, make_node_object, make_pod
from tests.support.cluster_files import as_list, lines
from tests.support.command import Run

CARD = "nvidia.com/gpu"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.json"
    file.write_text(as_list(make_node_object("n", capacity={CARD: 8})))
    return file


@pytest.mark.parametrize(
    "pod",
    [
        make_pod("p").annotate("maip.mxsf.io/wokload-type", "training"),
        make_pod("p").label(TYPE, "training"),
        make_pod("p").annotate("maip.mxsf.io/gpu-product", "NVIDIA-H20"),
    ],
    ids=["mistyped key", "label", "product without a type"],
)
def test_check_prints_the_warnings_of_a_pod_that_is_left_alone(run: Run, cluster: Path, pod: PodBuilder) -> None:
    files = ("-f", "-", "--cluster", cluster)

    checked, mutated = (run(name, *files, stdin=as_list(pod.gpu(1))) for name in ("check", "mutate"))

    warnings = [line for line in mutated.errors.splitlines() if line.startswith("Warning: ")]
    assert warnings
    assert checked.errors.splitlines() == warnings
