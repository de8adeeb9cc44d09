"""Generates the request of a benchmark in a size: test, small (its payload.json) or large.

The same size always gives the same bytes:

    python benchmarks/payload.py social-network large -o payload.json
"""

import argparse
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
SIZES = ("test", "small", "large")


def payload_text(name: str, size: str) -> str:
    """Return the request of benchmark `name` in `size`, in the format of payload.json."""
    # Folders of benchmarks are not packages: their names have hyphens.
    package = ModuleType(f"benchmark_{name.replace('-', '_')}")
    package.__path__ = [str(HERE / name)]
    sys.modules[package.__name__] = package
    generator = importlib.import_module(f"{package.__name__}.payload")
    return json.dumps(generator.payload(size)) + "\n"


def main() -> None:
    """Write the request to a file or to standard output."""
    names = sorted(path.parent.name for path in HERE.glob("*/payload.py"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("name", choices=names, help="the benchmark")
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: stdout)")
    arguments = parser.parse_args()
    text = payload_text(arguments.name, arguments.size)
    if arguments.output:
        arguments.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
