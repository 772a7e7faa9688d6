"""The tables of kube-scheduler's own unit tests as cases for `check`.

tracing.py       a copy of Kubernetes whose plugins write down what they are asked and what they answer
golang/traced.go the Go package that writes it
extraction.py    runs the plugins' tests on that copy, once for each version; the records stay in the cache folder
cases.py         records into cases: a cluster, a pod, a plugin, its answers by node
judging.py       the same question asked here, and what is set aside, each with its reason

`make upstream-tables` prints the counts by plugin and each case that goes against kube-scheduler. Nothing of upstream's
is committed.
"""
