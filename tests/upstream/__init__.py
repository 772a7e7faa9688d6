"""The tables of kube-scheduler's own unit tests as cases for `check`.

tracing.py       a copy of Kubernetes whose plugins record their calls and results
golang/traced.go the Go package that records them
extraction.py    runs the plugins' tests on that copy, once for each version; the records stay in the cache folder
cases.py         records into cases: a cluster, a pod, a plugin, its answers by node
comparing.py     compares each case with the result here; the excluded cases, each with its reason

release_changes.py what differs between two releases, and the modules here that cite it (`make release-changes`)

`make upstream-tables` prints the counts by plugin and each case that contradicts kube-scheduler. No upstream
code or data is committed.
"""
