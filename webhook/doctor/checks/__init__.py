"""The checks, by topic; `webhook.doctor.registry` has them in the order of their findings. Topics are independent."""
