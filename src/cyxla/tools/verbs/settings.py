"""``cyxla settings``: the environment variables."""

from __future__ import annotations

import argparse

from cyxla import config

HEAD = """# Environment variables

Written by `cyxla settings --markdown`.

Each variable is read when it is needed; an empty value is the default. Switches take `1`, `true` or `on`, and `0`,
`false` or `off`. When a program is compiled, a variable that begins with `CYXLA_` but is not in this table is refused,
and so is a value that does not parse. `cyxla settings` prints the current values; [debugging.md](debugging.md) shows
their use.

"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("name", nargs="?", help="show this variable, with or without CYXLA_")
    parser.add_argument("--markdown", action="store_true", help="print the whole table as docs/settings.md")


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    if args.markdown:
        print(markdown(), end="")
        return 0
    for name in [args.name.upper().removeprefix(config.PREFIX)] if args.name else config.FLAGS:
        config.require_known(name)
        print(f"{config.PREFIX + name:34s} {_text(config.get(name)) or '-':12s} {config.FLAGS[name].doc}")
    return 0


def markdown() -> str:
    """Return the table as a page."""
    rows = [
        f"| `{config.PREFIX}{name}` | {f'`{shown}`' if (shown := _text(flag.default)) else ''} | {flag.doc} |"
        for name, flag in config.FLAGS.items()
    ]
    return HEAD + "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows]) + "\n"


def _text(value: object) -> str:
    """Return a value as the text of its variable."""
    if isinstance(value, bool):
        return str(int(value))
    return ",".join(value) if isinstance(value, tuple) else str(value)
