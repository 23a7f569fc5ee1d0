"""What to expect of larger clusters: computing is measured, messages are modelled, waiting is simulated."""
