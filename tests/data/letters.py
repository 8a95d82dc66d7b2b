"""A tokenizer without a library: an id a letter, so that ids can be read."""


class Letters:
    """ASCII letters have the ids from 3; 0 is padding, 1 the end, 2 anything else."""

    pad_token_id, end_token_id = 0, 1

    def __init__(self, first=32):
        self.first = first

    def vocabulary_size(self):
        return 3 + 127 - self.first

    def tokenize(self, texts):
        size = self.vocabulary_size()
        numbers = [[3 + ord(letter) - self.first for letter in text] for text in texts]
        return [[n if 3 <= n < size else 2 for n in row] for row in numbers]

    def get_config(self):
        return {"first": self.first}


def text(ids):
    """What a row says: `_` for padding, `|` for the end."""
    return "".join("_|?"[i] if i < 3 else chr(int(i) - 3 + 32) for i in ids)
