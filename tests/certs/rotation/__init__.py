"""The certificate life, as planned and carried out."""
