"""Random clusters and pods: the prediction for each pod matches the real kube-scheduler.

`worlds.py`, with `constraints.py`, `pods.py`, `storage.py` and their neighbours, draws clusters and pods from a seed,
`random_profiles.py` scheduler configurations; `judge.py` puts them on the real control plane and asks kube-scheduler
(`bindings.py` puts back what it begins to bind); `command.py` asks `check -o json` the same; `comparison.py` says where
the placement check disagrees; `minimising.py` makes a disagreement small, and `cases.py` keeps it, with
kube-scheduler's answer, as a file that is replayed without any control plane. `DIFFERENTIAL_PODS` sets how many pods
are asked about, `DIFFERENTIAL_SEED` the first world. `python -m tests.differential.record COUNT` writes cases of which
there is nothing bad to say.
"""
