"""The kinds of schedulers: what each reads of a pod, one file and one row of the registry each."""
