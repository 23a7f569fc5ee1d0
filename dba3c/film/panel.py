"""The panel beside a film's frames: the score, the agent's value estimate and its curve, the step."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dba3c.types import Array

FRAMES_PER_SECOND = 60  # at which the emulator runs
PANEL_WIDTH = 100  # pixels of the emulator, before magnification
PANEL_HEIGHT = 195  # of its content, before magnification
MOST_HEIGHT = 250  # of an emulator's picture: only those of other environments are larger, and are magnified less
HISTORY_STEPS = 150  # steps that the curve of the value estimate covers
MARGIN = 8  # pixels of the emulator left and right of the panel's content
CURVE_TOP = 116  # pixels of the emulator above the curve of the value estimate
CURVE_BOTTOM = 156


class Shot(NamedTuple):
    """One frame of the emulator, and what the panel shows beside it."""

    picture: Array  # [height, width, 3] uint8
    game: str
    episode: str
    score: float
    step: int
    values: list[float]  # estimates of the agent up to this step, oldest first


def panels(scale: int, steps: int = 1) -> Callable[[Shot], Array]:
    """Return a function that draws a shot's panel, again only for a new score or episode, or after `steps` steps."""
    content: tuple[str, float, int] | None = None
    drawn = np.zeros(0)

    def draw(shot: Shot) -> Array:
        nonlocal content, drawn
        wanted = (shot.episode, shot.score, shot.step // steps)
        if content != wanted:
            content = wanted
            drawn = panel(shot, scale)
        return drawn

    return draw


def magnification(picture: Array, scale: int) -> int:
    """How much a picture is magnified where those of emulators are by `scale`."""
    return max(1, min(scale, scale * MOST_HEIGHT // len(picture)))


def panel(shot: Shot, wanted: int) -> Array:
    """Draw the panel of one shot, as high as its picture after magnification, [height, width] uint8, in gray."""
    height = len(shot.picture) * magnification(shot.picture, wanted)
    scale = wanted if len(shot.picture) <= MOST_HEIGHT else max(1, height // PANEL_HEIGHT)
    image = Image.new("L", (PANEL_WIDTH * scale, height), 20)
    pen = ImageDraw.Draw(image)

    def write(y: float, size: float, text: str, shade: int = 235) -> None:
        pen.text((MARGIN * scale, y * scale), text, fill=shade, font=font(size * scale))

    write(6, 10, shot.game)
    write(20, 8, shot.episode, 150)
    write(42, 8, "score", 150)
    write(51, 20, f"{shot.score:g}")
    write(84, 8, "value estimate", 150)
    write(93, 14, f"{shot.values[-1]:.2f}")
    draw_curve(pen, shot.values[-HISTORY_STEPS:], scale)
    write(168, 8, "step", 150)
    write(177, 14, f"{shot.step:,}")
    return np.asarray(image)


@cache
def font(size: float) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(size)


def draw_curve(pen: ImageDraw.ImageDraw, values: list[float], scale: int) -> None:
    """Draw the newest values from left to right, scaled to the range between their least and greatest."""
    left, right = MARGIN * scale, (PANEL_WIDTH - MARGIN) * scale
    top, bottom = CURVE_TOP * scale, CURVE_BOTTOM * scale
    pen.line([(left, bottom), (right, bottom)], fill=90, width=max(1, scale // 2))
    if len(values) < 2:
        return
    y = np.array(values)
    spread = max(float(np.ptp(y)), 1e-6)
    x = left + np.arange(len(y)) * (right - left) / (HISTORY_STEPS - 1)
    points = zip(x.tolist(), (bottom - (y - y.min()) / spread * (bottom - top)).tolist(), strict=True)
    pen.line(list(points), fill=215, width=(scale + 1) // 2, joint="curve")
