"""Keep the exported policy, which the API server applies itself, equal to the policy in force."""
