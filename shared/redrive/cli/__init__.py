"""The command line: one file per noun or verb, each imported when it is used."""
