"""Compute the gradient of log π of an action whose logit is so much below another's, with and without ε, as JSON."""

import json
import math

import numpy as np
import tensorflow as tf

from dba3c.networks.distributions import TINY, Softmax

GAPS = (1, 5, 10, 20, 50, 100, 110, 200)  # between the logits of two actions


def gradient_size(gap: float, plain: bool) -> float | None:
    """Return the norm of the gradient by the logits, in float32; None if it is not finite."""
    logits = tf.constant([[0.0, -gap]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        logs = (
            tf.math.log(tf.nn.softmax(logits))[:, 1] if plain else Softmax(logits).log_probabilities(tf.constant([1]))
        )
    size = float(np.linalg.norm(tape.gradient(logs, logits)))
    return size if math.isfinite(size) else None


if __name__ == "__main__":
    rows = [{"gap": gap, "plain": gradient_size(gap, True), "with_epsilon": gradient_size(gap, False)} for gap in GAPS]
    print(json.dumps({"epsilon": TINY, "rows": rows}, indent=1))
