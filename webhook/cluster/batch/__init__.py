"""The objects of batch schedulers: queues, pod groups and quotas."""
