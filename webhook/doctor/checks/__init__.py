"""The checks: one file each, registered in `webhook.doctor.registry`. They do not import each other."""
