"""Storage objects: PersistentVolumeClaims, PersistentVolumes, StorageClasses and CSI objects."""
