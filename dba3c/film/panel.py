"""The panel beside a film's frames: score, value and its line, step."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dba3c.types import Array

FRAMES_PER_SECOND = 60  # of the emulator
PANEL = 100  # pixels of the emulator that the panel is wide
HISTORY = 150  # steps of the value's line


class Shot(NamedTuple):
    """One frame of the emulator and what is told about it."""

    picture: Array  # [height, width, 3] uint8
    title: str
    game: str
    score: float
    step: int
    values: list[float]  # that the agent estimated at this step and those before it


def panels(scale: int, steps: int = 1) -> Callable[[Shot], Array]:
    """Draws the panel of a shot, in gray; anew only if the score or the game is another, or so many steps are over."""
    known: tuple[object, Array] = None, np.zeros(0)

    def draw(shot: Shot) -> Array:
        nonlocal known
        told = (shot.game, shot.score, shot.step // steps)
        if known[0] != told:
            known = told, panel(shot, scale)
        return known[1]

    return draw


def panel(shot: Shot, scale: int) -> Array:
    """[height, PANEL × scale] uint8: score, value and its line, step and time."""
    width, height = PANEL * scale, shot.picture.shape[0] * scale
    image = Image.new("L", (width, height), 20)
    pen = ImageDraw.Draw(image)

    def write(x: float, y: float, size: float, text: str, shade: int = 235) -> None:
        pen.text((x * scale, y * scale), text, fill=shade, font=font(size * scale))

    write(8, 6, 10, shot.title)
    write(8, 20, 8, shot.game, 150)
    write(8, 42, 8, "score", 150)
    write(8, 51, 20, f"{shot.score:g}")
    write(8, 84, 8, "value estimate", 150)
    write(8, 93, 14, f"{shot.values[-1]:.2f}")
    line(pen, shot.values[-HISTORY:], scale)
    write(8, 168, 8, "step", 150)
    write(8, 177, 14, f"{shot.step:,}")
    return np.asarray(image)


@cache
def font(size: float) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(size)


def line(pen: ImageDraw.ImageDraw, values: list[float], scale: int) -> None:
    """The newest values, from left to right, between their least and greatest."""
    left, right, top, bottom = 8 * scale, (PANEL - 8) * scale, 116 * scale, 156 * scale
    pen.line([(left, bottom), (right, bottom)], fill=90, width=max(1, scale // 2))
    if len(values) < 2:
        return
    y = np.array(values)
    spread = max(float(np.ptp(y)), 1e-6)
    x = left + np.arange(len(y)) * (right - left) / (HISTORY - 1)
    points = zip(x.tolist(), (bottom - (y - y.min()) / spread * (bottom - top)).tolist(), strict=True)
    pen.line(list(points), fill=215, width=(scale + 1) // 2, joint="curve")
