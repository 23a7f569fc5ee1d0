"""The configuration: hyperparams.yaml, its schema, and what its values mean together."""
