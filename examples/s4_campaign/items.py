"""Prints a campaign: one line for each item, for `redrive start --from-file -`."""

import json
import sys


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for number in range(count):
        item = f"{number:04}"
        print(json.dumps({"args": {"item": item}, "key": item}))


if __name__ == "__main__":
    main()
