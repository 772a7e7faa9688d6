"""Admission of objects other than pods, such as workload objects. Only pod templates are patched."""
