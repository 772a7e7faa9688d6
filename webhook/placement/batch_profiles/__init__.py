"""The profiles of batch schedulers: their filters, scores and messages. Each scheduler has a module."""
