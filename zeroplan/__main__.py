"""The entry point of the command and of `python -m zeroplan`."""

import sys


def main() -> int:
    """Run the command line; `--version` alone imports nothing else."""
    if sys.argv[1:] == ["--version"]:
        from zeroplan import __version__

        sys.stdout.write(f"zeroplan {__version__}\n")
        return 0
    from zeroplan.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
