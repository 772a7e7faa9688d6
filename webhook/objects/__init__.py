"""Admission of objects other than pods: objects that create pods, and Namespaces. Nothing here makes a patch."""
