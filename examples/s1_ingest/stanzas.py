"""The text of a .conf file: stanzas of `[name]`, each followed by `key = value`."""


class InvalidFormat(Exception):
    """Not one stanza could be read."""


def parse(text):
    """The stanzas by name, and what is wrong, line by line; the rest is read all the same."""
    stanzas, errors, settings = {}, [], None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        key, equals, value = line.partition("=")
        if line[0] == "[" and line[-1] == "]" and line[1:-1].strip():
            settings = stanzas.setdefault(line[1:-1].strip(), {})
        elif equals and key.strip() and settings is not None:
            settings[key.strip()] = value.strip()
        else:
            errors.append(f"line {number}: {line[:60]!r}")
    return stanzas, errors
