"""`python -m redrive` is `redrive`."""

from redrive.cli.main import main

if __name__ == "__main__":
    main()
