"""Run the command line with `python -m dpveil`."""

from dpveil.cli import main

if __name__ == "__main__":
    main()
