"""The files of a release: how they are made, and that each works; the workflows that publish them."""
