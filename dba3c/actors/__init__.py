"""What plays: simulators and a policy become batches of segments."""
