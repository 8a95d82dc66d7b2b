"""The face that all sources have."""


class Source:
    """Records with their places, as often as one likes unless made from an iterator."""

    def __iter__(self):
        """Yield `(place, record)`."""
        raise NotImplementedError

    def peek(self):
        """The first `(place, record)`, which iteration gives again; `None` if there is none."""
        iterator = iter(self)
        try:
            return next(iterator, None)
        finally:
            if hasattr(iterator, "close"):
                iterator.close()

    def fingerprint(self):
        """A str that tells contents apart, or `None` if there is none to be had."""
        return None
