"""The policy that the API server itself applies: kept in step with the policy in force."""
