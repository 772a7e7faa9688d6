"""Policies as MutatingAdmissionPolicies, which the API server evaluates itself."""

from webhook.mutation.exported.export import LEFT_TO_WEBHOOK, RELEASES, Exported, LeftOut, export

__all__ = ["LEFT_TO_WEBHOOK", "RELEASES", "Exported", "LeftOut", "export"]
