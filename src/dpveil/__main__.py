"""`python -m dpveil` is `dpveil`."""

from dpveil.cli import main

if __name__ == "__main__":
    main()
