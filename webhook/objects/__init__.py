"""Admission of objects other than pods, such as objects that create pods, and Namespaces.

Only pod templates are patched.
"""
