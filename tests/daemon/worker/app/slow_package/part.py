__all__ = ["VALUE"]
VALUE = 7
