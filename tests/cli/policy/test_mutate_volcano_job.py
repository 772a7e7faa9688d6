"""The main job of the project: a Volcano Job with two annotations gets the constraints that people write by hand."""

from pathlib import Path

from tests.support.programs.cluster_files import documents
from tests.support.programs.command import Run

_JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: training-job
spec:
  schedulerName: volcano
  minAvailable: 1
  policies:
  - action: CompleteJob
    event: TaskCompleted
  tasks:
  - replicas: 1
    name: worker
    template:
      metadata:
        annotations:
          maip.mxsf.io/workload-type: training
          maip.mxsf.io/gpu-product: NVIDIA-H20
          maip.mxsf.io/bin-packing: "false"
      spec:
        containers:
        - name: main
          image: nginx:latest
          imagePullPolicy: IfNotPresent
          resources:
            requests: {cpu: 1, memory: 1Gi}
            limits: {cpu: 1, memory: 1Gi}
        restartPolicy: Never
"""
_BY_TAINTS_ALONE = """
apiVersion: placement.maip.mxsf.io/v1alpha1
kind: PlacementPolicy
spec: {productAffinity: false}
"""
_BY_HAND = """
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions:
        - {key: maip.mxsf.io/node.usage, operator: In, values: [training, hybrid]}
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      preference:
        matchExpressions:
        - {key: maip.mxsf.io/node.usage, operator: In, values: [training]}
tolerations:
- {key: maip.mxsf.io/node.usage, operator: Equal, value: training, effect: NoSchedule}
- {key: maip.mxsf.io/node.usage, operator: Equal, value: hybrid, effect: NoSchedule}
- {key: nvidia.com/gpu.product, operator: Equal, value: NVIDIA-H20, effect: NoSchedule}
"""


def test_the_pod_has_the_constraints_that_people_write_by_hand(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(_BY_TAINTS_ALONE)

    outcome = run("mutate", "-f", "-", "--policy", policy, stdin=_JOB)

    assert outcome.code == 0
    (pod,) = documents(outcome.output)
    (by_hand,) = documents(_BY_HAND)
    written = {key: pod["spec"][key] for key in ("affinity", "tolerations", "schedulerName", "restartPolicy")}
    assert written == {**by_hand, "schedulerName": "volcano", "restartPolicy": "Never"}


def test_the_diff_adds_nothing_else_to_the_spec(run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(_BY_TAINTS_ALONE)

    outcome = run("mutate", "-f", "-", "--policy", policy, "-o", "diff", stdin=_JOB)

    assert outcome.code == 0
    changed = [line for line in outcome.output.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert not [line for line in changed if line.startswith("-")]
    assert [line for line in changed if line.startswith("+  ") and line[3] not in " -"] == [
        "+  affinity:",
        "+  tolerations:",
    ]
