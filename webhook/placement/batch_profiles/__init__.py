"""The profiles of batch schedulers: their filters, scores and words, one file for each scheduler."""
