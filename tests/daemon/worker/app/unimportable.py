"""A module of the application that cannot be imported."""

__import__("no_such_module_anywhere")
