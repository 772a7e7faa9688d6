"""The checks by topic. `placement_doctor.registry` lists them in the order of findings. Topics are independent."""
