"""Noisy pictures of shapes, drawn as they are asked for and cleaned by the plugin (filters.cpp), called through ctypes.

    python examples/pictures/pictures.py        some batches, and nothing is learned; needs no torch
"""
import argparse
import array
import ctypes
import os
import pathlib
import random

SIDE = 32
BATCH = 24
SHAPES = ["disc", "square", "cross", "ring"]

ROOT = pathlib.Path(__file__).resolve().parents[2]
filters = ctypes.CDLL(os.environ.get("FILTERS", ROOT / "build/pictures/libfilters.so"))
for function in (filters.denoise, filters.edges):
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
filters.device_name.restype = ctypes.c_char_p


def draw(number):
    """The pixels of a picture, one after another in plain Python; its shape is number % 4."""
    rng = random.Random(number)
    shape = SHAPES[number % len(SHAPES)]
    size, middle_x, middle_y = rng.uniform(6, 11), rng.uniform(12, 20), rng.uniform(12, 20)
    pixels = array.array("f")
    for y in range(SIDE):
        for x in range(SIDE):
            right, down = abs(x - middle_x), abs(y - middle_y)
            if shape == "disc":
                inside = right * right + down * down < size * size
            elif shape == "square":
                inside = max(right, down) < 0.8 * size
            elif shape == "cross":
                inside = min(right, down) < 0.3 * size and max(right, down) < size
            else:
                inside = 0.4 < (right * right + down * down) / (size * size) < 1
            pixels.append(inside + rng.random() - 0.5)
    return pixels


def load_batch(numbers):
    """Pictures with these numbers, clean, one after another; and which shapes they show."""
    noisy = array.array("f")
    for number in numbers:
        noisy.extend(draw(number))
    clean = array.array("f", bytes(len(noisy) * noisy.itemsize))
    filters.denoise(noisy.buffer_info()[0], clean.buffer_info()[0], len(numbers), SIDE)
    return clean, [number % len(SHAPES) for number in numbers]


def main():
    parser = argparse.ArgumentParser(description="Draws batches of pictures, cleans them and finds their edges.")
    parser.add_argument("--batches", type=int, default=40, help="so many (40)")
    batches = parser.parse_args().batches
    for batch in range(batches):
        clean, _ = load_batch(range(BATCH * batch, BATCH * batch + BATCH))
        edges = array.array("f", clean)
        filters.edges(clean.buffer_info()[0], edges.buffer_info()[0], BATCH, SIDE)
    print(f"{batches * BATCH} pictures drawn and cleaned; filters on {filters.device_name().decode():.40}")


if __name__ == "__main__":
    main()
