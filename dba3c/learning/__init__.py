"""From batches to gradients and from gradients to weights."""
