"""Mutations of program texts, most of which remain programs."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from fuzzing import bits

TOKEN = re.compile(
    r'"[^"\n]*"|\s+|(?<=[\d?])x(?=[\d?a-z!])|[%@#^!]?[A-Za-z_](?:[\w.\-$]*[\w$])?|'
    r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|.",
    re.DOTALL,
)
NUMBER = re.compile(r"-?\d")
TYPE = re.compile(r"(?:pred|bf16|token|opaque|index|none|u?[suif]\d+\w*|f[48]\w+|c64|c128|tensor|tuple|complex)\Z")
EXTREMES = (
    "0", "1", "-1", "2", "3", "7", "8", "63", "64", "65", "127", "128", "255", "256", "-128", "1000", "65536",
    "2147483647", "2147483648", "-2147483648", "4294967296", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "18446744073709551616", "1000000000000000000000000000000", "1e308", "-1e308", "1e-320",
    "nan", "-nan", "inf", "-inf", "-0.0", "0.5", "1e400", "0x7fc00000", "nan(0x1)",
)  # fmt: skip
ODD = (
    "{", "}", "(", ")", "[", "]", "<", ">", ",", "=", ":", "->", '"', "%", "@", "\\", "/*", "*/", "//", "\n", ";", "?",
    "\0", "\u2028", "é", "{}", "()", "[]", "<=", "...", "ROOT ", "ENTRY ", "metadata={", "dense<", "loc(",
)  # fmt: skip


def split(text: str) -> list[str]:
    """The tokens of a text; joined they are the text."""
    return TOKEN.findall(text)


class Vocabulary:
    """Tokens of many texts, by kind."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        found: dict[str, set[str]] = {}
        for text in self.texts:
            tokens = split(text)
            for k, token in enumerate(tokens):
                found.setdefault(role(tokens, k), set()).add(token)
        self.words = {kind: sorted(words)[:4000] for kind, words in found.items()}
        self.lines = sorted({line for text in self.texts for line in text.splitlines()})

    def word(self, kind: str, rng: random.Random) -> str:
        return rng.choice(self.words.get(kind) or [""])


def role(tokens: Sequence[str], k: int) -> str:
    """Return the kind of a token: number, type, called name, key, or a name with its sigil."""
    token = tokens[k]
    if NUMBER.match(token):
        return "number"
    if TYPE.match(token):
        return "type"
    if token[0].isalpha() or token[0] in "_%@#^!":
        follower = tokens[k + 1] if k + 1 < len(tokens) else ""
        return {"(": "called", "=": "key"}.get(follower, "name" + (token[0] if token[0] in "%@#^!" else ""))
    return "blank" if token.isspace() else token[0]


def number(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    """Another number."""
    k = _one(tokens, rng, lambda t: NUMBER.match(t))
    if k is not None:
        tokens[k] = _other_number(tokens[k], tokens, rng)


def all_of_a_number(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    """Another size, wherever it stands."""
    k = _one(tokens, rng, lambda t: NUMBER.match(t))
    if k is not None:
        old, new = tokens[k], _other_number(tokens[k], tokens, rng)
        tokens[:] = [new if t == old else t for t in tokens]


def _other_number(token: str, tokens: list[str], rng: random.Random) -> str:
    how = rng.random()
    if how < 0.3:
        return rng.choice(EXTREMES)
    if how < 0.6:
        return rng.choice([t for t in tokens if NUMBER.match(t)])
    try:
        value = int(token)
    except ValueError:
        return rng.choice(("-", "")) + token.lstrip("-") + rng.choice(("", "0", "e30", "e-30"))
    return str(rng.choice((value + 1, value - 1, 2 * value, value // 2, -value, value**2)))


def word(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    """Another word of the same role, of this text or of any."""
    k = _one(tokens, rng, str.strip)
    if k is None:
        return
    kind = role(tokens, k)
    same = [t for j, t in enumerate(tokens) if role(tokens, j) == kind] if rng.random() < 0.6 else []
    tokens[k] = rng.choice(same) if same else words.word(kind, rng)


def type_(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    """Another type, in one place or wherever it stands."""
    k = _one(tokens, rng, TYPE.match)
    if k is not None:
        old, new = tokens[k], words.word("type", rng)
        if rng.random() < 0.7:
            tokens[:] = [new if t == old else t for t in tokens]
        else:
            tokens[k] = new


def opcode(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    """Another operation."""
    found = [k for k in range(len(tokens)) if role(tokens, k) == "called"]
    if found:
        tokens[rng.choice(found)] = words.word("called", rng)


def exchange(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    """Two tokens of one role change places: operands, numbers, names."""
    k = _one(tokens, rng, str.strip)
    if k is not None:
        kind = role(tokens, k)
        j = rng.choice([j for j in range(len(tokens)) if role(tokens, j) == kind])
        tokens[j], tokens[k] = tokens[k], tokens[j]


def delete(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    k = rng.randrange(len(tokens))
    del tokens[k : k + rng.randint(1, 4)]


def repeat(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    k, size = rng.randrange(len(tokens)), rng.randint(1, 12)
    tokens[k:k] = tokens[k : k + size] * rng.choice((1, 1, 1, 2, 50))


def insert(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    tokens.insert(rng.randrange(len(tokens)), rng.choice(ODD))


def nest(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    """Brackets around a part, many times."""
    k = rng.randrange(len(tokens))
    a, b = rng.choice(("()", "{}", "[]", "<>", ("tuple<", ">"), ("negate(", ")"), ("complex<", ">")))
    times = rng.choice((1, 2, 30, 300))
    tokens[k : k + 1] = [a * times, tokens[k], b * times]


def lines(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    """A line gone, twice, elsewhere, exchanged, or from another text."""
    rows = "".join(tokens).splitlines(keepends=True)
    k, j = rng.randrange(len(rows)), rng.randrange(len(rows))
    match rng.randrange(5):
        case 0:
            del rows[k]
        case 1:
            rows.insert(j, rows[k])
        case 2:
            rows.insert(j, rows.pop(k))
        case 3:
            rows[j], rows[k] = rows[k], rows[j]
        case 4:
            rows.insert(j, rng.choice(words.lines) + "\n")
    tokens[:] = split("".join(rows))


def splice(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    """The head of this text and the tail of another."""
    other = split(rng.choice(words.texts))
    tokens[rng.randrange(len(tokens)) :] = other[rng.randrange(len(other)) :]


def characters(tokens: list[str], rng: random.Random, words: Vocabulary) -> None:
    """Changes that know nothing of the language."""
    changed = bits.damaged("".join(tokens).encode(), rng)
    tokens[:] = split(changed.decode("utf-8", rng.choice(("replace", "ignore"))))


Mutation = Callable[[list[str], random.Random, Vocabulary], None]
MUTATIONS: list[tuple[Mutation, int]] = [
    (number, 6), (all_of_a_number, 8), (word, 6), (type_, 8), (opcode, 6), (exchange, 8), (delete, 2), (repeat, 2),
    (insert, 1), (nest, 1), (lines, 5), (splice, 1), (characters, 1),
]  # fmt: skip
_CHOICES = [m for m, weight in MUTATIONS for _ in range(weight)]


def mutated(text: str, rng: random.Random, words: Vocabulary) -> str:
    """A text with one to six mutations."""
    tokens = split(text)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
        if tokens:
            rng.choice(_CHOICES)(tokens, rng, words)
            tokens = [token for token in tokens if token]
    return "".join(tokens)


def _one(tokens: list[str], rng: random.Random, accept: Callable[[str], object]) -> int | None:
    """A random token of those wanted: tried a few times, then looked for."""
    for _ in range(8):
        k = rng.randrange(len(tokens)) if tokens else 0
        if tokens and accept(tokens[k]):
            return k
    found = [k for k, t in enumerate(tokens) if accept(t)]
    return rng.choice(found) if found else None
