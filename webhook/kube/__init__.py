"""Rules of Kubernetes: names, quantities, selectors, tolerations, AdmissionReview. No policy."""
