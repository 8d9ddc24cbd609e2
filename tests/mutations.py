"""Damage to files of text: bits, pieces and words that are changed, taken away or put in."""

import random

PIECES = [
    b"9", b"-", b".", b"e9", b" ", b"\n", b"#", b"\0", b"\xff", b"\xc3\xa9", b" 999999999 ", b"nan", b"inf", b"_",
    b"0x", b"00", b"9" * 5000, "²".encode(), b"1_0", b"[" * 2000, b".a" * 2000, b"\x1b[31m", b"999999999999999999",
    b"3000000", b"99999999999999999999", b"1e999", b"\x1f\x8b", b"\r", b"\x0c", b"\x1c", b" 2147483647", b"1e-999",
    b"M", b"0 0 0", b"," * 999,
]  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    kind = rng.randrange(6)
    i, j = sorted(rng.choices(range(len(data) + 1), k=2))
    if kind == 0 and i < len(data):
        return data[:i] + bytes([data[i] ^ (1 << rng.randrange(8))]) + data[i + 1 :]
    if kind == 1:
        return data[:i] + data[min(j, i + rng.randrange(1, 9)) :]
    if kind == 2:
        return data[:i] + rng.choice(PIECES) + data[i:]
    if kind == 3:
        return data[:i]
    words = data.split(b" ") if rng.random() < 0.5 else data.split(b"\n")
    a, b = rng.randrange(len(words)), rng.randrange(len(words))
    if kind == 4:
        words[a], words[b] = words[b], words[a]
    else:
        words[a] = rng.choice(PIECES)
    return (b" " if b" ".join(words).count(b"\n") == data.count(b"\n") else b"\n").join(words)
