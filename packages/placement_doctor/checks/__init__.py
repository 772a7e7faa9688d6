"""The checks, by topic; `placement_doctor.registry` has them in the order of their findings. Topics are independent."""
