"""``cyxla cache``: the disk cache of compiled programs."""

from __future__ import annotations

import argparse

from cyxla.xla.cpu.native import cache


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("action", choices=("info", "clear", "verify"), nargs="?", default="info")


def main(args: argparse.Namespace) -> int:
    """Run the verb; the status is 1 if entries were damaged."""
    store = cache.open_cache()
    if store is None:
        print("the disk cache is off")
        return 0
    if args.action == "clear":
        store.clear()
        print(f"cleared {store.directory}")
        return 0
    if args.action == "verify":
        damaged = store.verify()
        for path in damaged:
            print(f"removed damaged {path}")
        print(f"{len(damaged)} entries damaged")
        return 1 if damaged else 0
    for name, value in store.info().items():
        print(f"{name}: {value}")
    return 0
