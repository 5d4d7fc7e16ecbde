"""Random programs, cpu against interpreter: python tests/fuzz.py --seed 0 --count 500."""

import argparse
import sys
import traceback

from random_programs import check, random_module

from cyxla.errors import UnimplementedError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--length", type=int, default=30)
    args = parser.parse_args()
    failed, lacking = [], 0
    for seed in range(args.seed, args.seed + args.count):
        try:
            check(seed, args.length)
        except UnimplementedError:
            lacking += 1
        except Exception as error:
            failed.append(seed)
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:300]}")
            if args.count == 1:
                traceback.print_exc()
                print(random_module(seed, args.length)[0].to_text())
    print(f"{args.count - len(failed) - lacking} passed, {len(failed)} failed, {lacking} without native code")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
