"""JSON and YAML documents, and errors that name a field."""
