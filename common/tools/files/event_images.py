"""Pictures for TensorBoard: of arrays, several in one, of matplotlib."""

from __future__ import annotations

import struct
import sys
import zlib
from typing import Any

import numpy as np

from common.core.errors import ArgumentError
from common.tools.files.event_records import EventRecords, array


class Images(EventRecords):
    """Methods that add pictures."""

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Add a picture.

        Parameters
        ----------
        tag : its name.
        img_tensor : (...) uint8 from 0 to 255, or floats from 0 to 1; beyond, they are cut off.
        global_step, walltime : see `add_scalar`.
        dataformats : which dimension is what: "CHW", "HWC" or "HW", in any order; with "N", several pictures as one.
            Channels are 1 for grey, 3 for colours, 4 with opacity.

        Raises
        ------
        ArgumentError : other dimensions, or another number of channels.
        """
        pixels = in_rows(array(img_tensor), dataformats, "add_image")
        height, width, channels = pixels.shape
        image = self._summary.Summary.Image(
            height=height, width=width, colorspace=channels, encoded_image_string=png(pixels)
        )
        self._add(global_step, walltime, tag=tag, image=image)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Add several pictures of one size as one, in rows of up to eight.

        Parameters
        ----------
        tag, img_tensor, global_step, walltime, dataformats : see `add_image`; "N" is the dimension of the pictures.

        Raises
        ------
        ArgumentError : as `add_image`.
        """
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Add a figure of matplotlib, or several of one size as one picture.

        Parameters
        ----------
        tag : its name.
        figure : a `matplotlib.figure.Figure`, or a list of them.
        global_step, walltime : see `add_scalar`.
        close : forget the figure, if pyplot keeps it.

        Raises
        ------
        ArgumentError : no figure.
        """
        figures = figure if isinstance(figure, (list, tuple)) else [figure]
        if not figures or not all(hasattr(each, "savefig") for each in figures):
            raise ArgumentError("add_figure(): argument 'figure' must be a figure of matplotlib, or a list of them")
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        drawn = []
        for each in figures:
            canvas: Any = FigureCanvasAgg(each)
            canvas.draw()
            drawn.append(np.array(canvas.buffer_rgba()))
            if close and (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
                pyplot.close(each)
        self.add_image(tag, np.stack(drawn), global_step, walltime, "NHWC")


def in_rows(pixels: np.ndarray, dataformats: str, what: str, columns: int = 8) -> np.ndarray:
    """A picture as (height, width, channels) of uint8.

    Parameters
    ----------
    pixels : uint8, or floats from 0 to 1.
    dataformats : a letter per dimension: N, C, H, W.
    what : the function, for its error.
    columns : pictures in a row, at most.

    Raises
    ------
    ArgumentError : letters that do not fit the dimensions, or a number of channels that is no picture.
    """
    letters = str(dataformats).upper()
    if (
        sorted(letters) not in (sorted("HW"), sorted("CHW"), sorted("NCHW"), sorted("NHW"))
        or len(letters) != pixels.ndim
    ):
        raise ArgumentError(
            f"{what}(): an array of shape {pixels.shape} does not fit dataformats={dataformats!r}; it has a letter per "
            "dimension, of N, C, H and W"
        )
    for letter in "NC":
        if letter not in letters:
            pixels, letters = pixels[None], letter + letters
    n, height, width, channels = (pixels := pixels.transpose([letters.index(letter) for letter in "NHWC"])).shape
    if channels not in (1, 3, 4):
        raise ArgumentError(f"{what}(): a picture has 1, 3 or 4 channels, not {channels}; see dataformats")
    if pixels.dtype != np.uint8:
        pixels = (np.clip(np.nan_to_num(pixels.astype(np.float64)), 0, 1) * 255).astype(np.uint8)
    columns = max(1, min(n, columns))
    rows = -(-n // columns)
    grid = np.zeros((rows, columns, height, width, channels), np.uint8)
    grid.reshape(-1, height, width, channels)[:n] = pixels
    return grid.transpose(0, 2, 1, 3, 4).reshape(rows * height, columns * width, channels)


def png(pixels: np.ndarray) -> bytes:
    """A picture as a PNG file.

    Parameters
    ----------
    pixels : (height, width, channels) uint8, with 1, 3 or 4 channels.

    Examples
    --------
    >>> png(np.zeros((2, 3, 1), np.uint8))[1:4]
    b'PNG'
    """
    height, width, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each line begins with 0: no filter
    lines[:, 1:] = pixels.reshape(height, -1)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    body = zlib.compress(lines.tobytes())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
