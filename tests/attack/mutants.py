"""Damages a DuckDB file so that its checksums still hold: what DuckDB then reads is not what it wrote.

A file begins with three headers of 4 KiB, then blocks of 16 KiB follow, as in all small recordings. Each of them begins with a
checksum of 8 bytes:
5381, combined by exclusive or with every word of 8 bytes that follows, multiplied by a constant. So a changed word changes
the checksum by the exclusive or of its old and new product.
"""
import struct

HEADER, HEADERS, BLOCK = 4096, 3, 16384
FACTOR, MASK = 0xBF58476D1CE4E5B9, (1 << 64) - 1


def block_of(offset):
    """The beginning of the header or block that holds this byte."""
    if offset < HEADER * HEADERS:
        return offset // HEADER * HEADER
    return HEADER * HEADERS + (offset - HEADER * HEADERS) // BLOCK * BLOCK


def word(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def checksum_holds(data, start, size):
    total = 5381
    for at in range(start + 8, start + size, 8):
        total ^= word(data, at) * FACTOR & MASK
    return total == word(data, start)


def put_byte(data, offset, value):
    start = block_of(offset)
    at = start + (offset - start) // 8 * 8
    if at == start:
        return  # the checksum itself
    old = word(data, at)
    data[offset] = value
    struct.pack_into("<Q", data, start, word(data, start) ^ (old * FACTOR & MASK) ^ (word(data, at) * FACTOR & MASK))


def mutant(original, random, used):
    """A copy with 1 to 8 changed bytes; most of a file is zeros, and so they are chosen among the used ones."""
    data = bytearray(original)
    values = [0, 1, 0x7F, 0x80, 0xFF]
    for _ in range(random.choice([1, 1, 2, 4, 8])):
        offset = random.choice(used)
        put_byte(data, offset, random.choice([*values, data[offset] ^ 1 << random.randrange(8), random.randrange(256)]))
    return bytes(data)
