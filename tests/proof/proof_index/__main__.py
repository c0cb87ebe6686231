"""Print what tests and mutants prove, by number.

python -m proof_index            all of it
python -m proof_index S B63      all scenarios, and one bug
python -m proof_index --write    the page of counts, tests/proof/docs/counts.md
"""

import argparse
import sys
from collections.abc import Sequence

from proof_index.markers import WITHOUT_TEST, markers, order_of


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="proof_index", description="What tests and mutants prove, by number."
    )
    parser.add_argument(
        "numbers", metavar="NUMBER", nargs="*", help="S12, K7, B63, or a letter for all of its kind"
    )
    parser.add_argument("--write", action="store_true", help="write the page of counts instead")
    options = parser.parse_args(arguments)
    # Both import the simulation, which takes seconds; wrong words are refused before.
    from proof_index.counts import PAGE, counts_page
    from simulation.mutants import MUTANTS

    marks = markers()
    if options.write:
        PAGE.write_text(counts_page(marks), encoding="utf-8")
        return 0
    lines: dict[str, list[str]] = {number: [words] for number, words in WITHOUT_TEST.items()}
    for one in marks:
        of_number = lines.setdefault(one.number, [])
        if one.says:
            of_number.insert(0, ": ".join(one.says))
        of_number.append(f"{one.path}::{one.test}")
    for mutant in MUTANTS:
        for number in mutant.brings_back:
            lines[number].append(f"mutant {mutant.name}")
    wanted = [
        number
        for number in sorted(lines, key=order_of)
        if not options.numbers or number in options.numbers or number[0] in options.numbers
    ]
    if not wanted:
        parser.error(f"no such number: {', '.join(options.numbers)}")
    for number in wanted:
        first, *others = lines[number]
        print(f"{number:<4} {first}", *(f"     {other}" for other in others), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
