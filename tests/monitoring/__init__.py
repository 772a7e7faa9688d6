"""Alerts, runbooks and dashboard, evaluated by a real Prometheus."""
