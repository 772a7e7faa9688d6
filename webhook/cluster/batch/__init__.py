"""The objects of batch schedulers: queues, pod groups and quotas, one file for each family."""
