"""Admission of objects other than pods: objects that create pods, and Namespaces. Only pod templates are patched."""
