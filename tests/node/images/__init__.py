"""The image of the project, built by a container engine of the machine."""
