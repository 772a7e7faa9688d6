"""Policies as MutatingAdmissionPolicies and ValidatingAdmissionPolicies, which the API server evaluates itself."""

from webhook.mutation.exported.export import Exported, LeftOut, export

__all__ = ["Exported", "LeftOut", "export"]
