"""`make bench-simulate`: the simulation beside a replay of the same pods on the real kube-scheduler."""
