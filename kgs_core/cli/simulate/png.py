"""Pictures as PNG, pixel by pixel: what `svg` draws, twice as large, with letters five dots wide."""

import struct
import zlib
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kgs_core.simulation.figure import DASH, Dot, Line, Picture, Point, Text

_SCALE = 2
_LETTER, _HEIGHT = 6, 7
# Characters from blank to tilde, five columns of eight dots each, lowest bit on top
_FONT = bytes.fromhex(
    "0000000000 00005f0000 0007000700 147f147f14 242a7f2a12 2313086462 3649562050 0008070300 001c224100 0041221c00"
    "2a1c7f1c2a 08083e0808 0080703000 0808080808 0000606000 2010080402 3e5149453e 00427f4000 7249494946 2141494d33"
    "1814127f10 2745454539 3c4a494931 4121110907 3649494936 464949291e 0000140000 0040340000 0008142241 1414141414"
    "0041221408 0201590906 3e415d594e 7c1211127c 7f49494936 3e41414122 7f4141413e 7f49494941 7f09090901 3e41415173"
    "7f0808087f 00417f4100 2040413f01 7f08142241 7f40404040 7f021c027f 7f0408107f 3e4141413e 7f09090906 3e4151215e"
    "7f09192946 2649494932 03017f0103 3f4040403f 1f2040201f 3f4038403f 6314081463 0304780403 6159494d43 007f414141"
    "0204081020 004141417f 0402010204 4040404040 0003070800 2054547840 7f28444438 3844444428 384444287f 3854545418"
    "00087e0902 18a4a49c78 7f08040478 00447d4000 2040403d00 7f10284400 00417f4000 7c04780478 7c08040478 3844444438"
    "fc18242418 18242418fc 7c08040408 4854545424 04043f4424 3c4040207c 1c2040201c 3c4030403c 4428102844 4c9090907c"
    "4464544c44 0008364100 0000770000 0041360800 0201020402"
)
_FIRST = ord(" ")
_UNKNOWN = "?"

Pixels = NDArray[np.uint8]


def png(picture: Picture) -> bytes:
    """The picture as a PNG file."""
    pixels: Pixels = np.full((picture.height * _SCALE, picture.width * _SCALE, 3), 255, dtype=np.uint8)
    for shape in picture.shapes:
        match shape:
            case Line(points, color, width, dashed):
                for begin, end in pairwise(points):
                    _segment(pixels, begin, end, color, width, dashed=dashed)
            case Dot(at, color, radius):
                _disk(pixels, at, color, radius)
            case Text(_, _, _, _, _):
                _text(pixels, shape)
    return _encode(pixels)


def _segment(pixels: Pixels, begin: Point, end: Point, color: str, width: float, *, dashed: bool) -> None:
    steps = max(1, round(2 * _SCALE * max(abs(end[0] - begin[0]), abs(end[1] - begin[1]))))
    for step in range(steps + 1):
        if dashed and step // (2 * _SCALE * DASH) % 2:  # so many steps a pixel
            continue
        share = step / steps
        at = begin[0] + (end[0] - begin[0]) * share, begin[1] + (end[1] - begin[1]) * share
        _disk(pixels, at, color, width / 2)


def _disk(pixels: Pixels, at: Point, color: str, radius: float) -> None:
    x, y, r = at[0] * _SCALE, at[1] * _SCALE, max(radius * _SCALE, 0.6)
    left, right = max(0, int(x - r)), min(pixels.shape[1], int(x + r) + 2)
    top, bottom = max(0, int(y - r)), min(pixels.shape[0], int(y + r) + 2)
    rows, columns = np.ogrid[top:bottom, left:right]
    inside = (columns + 0.5 - x) ** 2 + (rows + 0.5 - y) ** 2 <= r * r
    pixels[top:bottom, left:right][inside] = _rgb(color)


def _text(pixels: Pixels, text: Text) -> None:
    width = len(text.text) * _LETTER
    shift = {"start": 0.0, "middle": width / 2, "end": float(width)}[text.anchor]
    left, top = round((text.at[0] - shift) * _SCALE), round((text.at[1] - _HEIGHT) * _SCALE)
    for number, character in enumerate(text.text):
        index = ord(character) - _FIRST
        if not 0 <= index < len(_FONT) // 5:
            index = ord(_UNKNOWN) - _FIRST
        for column, bits in enumerate(_FONT[5 * index : 5 * index + 5]):
            for row in range(8):
                if bits >> row & 1:
                    _square(pixels, left + (number * _LETTER + column) * _SCALE, top + row * _SCALE, text)


def _square(pixels: Pixels, left: int, top: int, text: Text) -> None:
    right, bottom = left + _SCALE + text.bold, top + _SCALE
    if left >= 0 and top >= 0 and right <= pixels.shape[1] and bottom <= pixels.shape[0]:
        pixels[top:bottom, left:right] = _rgb(text.color)


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _encode(pixels: Pixels) -> bytes:
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # each row is told to be unfiltered
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
