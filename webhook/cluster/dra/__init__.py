"""Dynamic resource allocation objects: DeviceClasses, ResourceClaims and ResourceSlices."""
