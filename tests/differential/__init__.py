"""Random clusters and pods: the prediction for each pod matches the real kube-scheduler.

`worlds.py`, with `constraints.py`, `pods.py`, `storage.py` and their neighbours, draws clusters and pods from a seed,
`random_profiles.py` scheduler configurations. `kube_scheduler.py` creates them on the real control plane and asks
kube-scheduler (`bindings.py` restores what it begins to bind). `command.py` runs `check -o json` on the same.
`comparison.py` finds where the placement check disagrees. `minimising.py` makes a disagreement small, and `cases.py`
keeps it, with kube-scheduler's answer, as a file that is replayed without a control plane. `DIFFERENTIAL_PODS` sets the
number of pods, `DIFFERENTIAL_SEED` the first world. `python -m tests.differential.record COUNT` writes cases without a
disagreement.
"""
