"""A3C with log π where dba3c, as GA3C, has log(π + ε): for the sheet g3.yaml."""

import tensorflow as tf

import dba3c
from dba3c.learning.a3c import A3C
from dba3c.networks.distributions import Choices, Softmax


class PlainSoftmax(Softmax):
    """A choice of one of n actions whose logarithms have nothing added."""

    def __init__(self, logits):
        super().__init__(logits)
        self._log_policy = tf.math.log(self._policy)


class PlainChoices(Choices):
    def of(self, outputs):
        return PlainSoftmax(outputs["policy"])


class PlainLog:
    """A3C in all else."""

    def __init__(self, config, spaces):
        self._a3c = A3C(config, spaces)
        self._a3c._actor._family = PlainChoices(int(spaces.action.n))

    def __getattr__(self, name):
        return getattr(self._a3c, name)


dba3c.register("algorithm.name", "a3c_plain_log", PlainLog)
