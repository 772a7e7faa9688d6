"""Random clusters and pods: what is foretold for each pod is what the real kube-scheduler makes of it.

`worlds.py`, `constraints.py` and `pods.py` draw clusters and pods from a seed; `judge.py` puts them on the real control
plane and asks kube-scheduler; `comparison.py` says where the placement check disagrees; `minimising.py` makes a
disagreement small, and `cases.py` keeps it, with kube-scheduler's answer, as a file that is replayed without any
control plane. `DIFFERENTIAL_PODS` sets how many pods are asked about, `DIFFERENTIAL_SEED` the first world.
`python -m tests.differential.record COUNT` writes cases of which there is nothing bad to say.
"""
