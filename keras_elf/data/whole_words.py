"""A SentencePiece model whose pieces are the words of a text, for text with few of them."""

import collections
import re
import struct
import unicodedata

# SentencePiece's mark of a blank. Decoding turns it back.
BLANK = "\u2581"
# Marks that join letters to one word: zero-width joiners of Persian or Hindi.
_JOINERS = "\u200c\u200d"
# Score of a letter that no word uses alone. Any word is better, and the unknown token is worse:
# SentencePiece puts it 10 below the lowest score of all.
_LETTER_SCORE = -10.0
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6


class WordCounts:
    """How often each word and each mark of a text occurs.

    A word is a run of letters, digits and their accents, with apostrophes inside, and with the
    blank before it, where there is one. Every other character stands alone.

    Args:
        letters: bytes. A SentencePiece model of the text's characters, whose normaliser is used.
        texts: iterable of str.
    """

    def __init__(self, letters, texts):
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(model_proto=letters)
        self.letters = letters
        self.pieces = [_Piece(processor, i) for i in range(processor.vocab_size())]
        self._characters = {p.text for p in self.pieces if p.kind == _NORMAL}
        word = "".join(re.escape(c) for c in sorted(self._characters) if _is_letter(c))
        word = f"[{word}]+" if word else "(?!)"
        self._pattern = re.compile(f"{BLANK}?{word}(?:['\u2019]{word})*|{BLANK}?[^{BLANK}]|{BLANK}")
        self._words = re.compile(f"{BLANK}?{word}.*", re.DOTALL)
        counts = collections.Counter()
        for text in texts:
            counts.update(self._pattern.findall(processor.normalize(text)))
        # What has an unknown character cannot be a piece: it would make the character known.
        known = self._characters.issuperset
        self._ranking = sorted((p for p in counts if known(p)), key=lambda p: (-counts[p], p))
        self._counts = counts

    @property
    def smallest_size(self):
        """Pieces of a model without any word."""
        return len(self.pieces)

    def chosen(self, size, at_least=1):
        """The words of a model of at most `size` pieces, most frequent first.

        Single characters are pieces anyway and take no room.
        """
        room, words = size - len(self.pieces), []
        for piece in self._ranking:
            if piece in self._characters:
                words.append(piece)
            elif room > 0 and self._counts[piece] >= at_least:
                words.append(piece)
                room -= 1
        return words

    def size(self, words):
        """Number of pieces of the model of these words."""
        return len(self.pieces) + len(set(words) - self._characters)

    def coverage(self, words):
        """Share of the text's running words, marks not counted, that `words` has."""
        running = {p: n for p, n in self._counts.items() if self._words.match(p)}
        return sum(running.get(p, 0) for p in words) / max(1, sum(running.values()))

    def model(self, words):
        """The SentencePiece model with these words as pieces, serialised.

        One piece is always better than two, as all words score between -1 and -2; what has no
        piece is made of the longest known parts and of single letters.
        """
        chosen = set(words)
        first = [p for p in self.pieces if p.kind != _NORMAL]
        rest = [p.text for p in self.pieces if p.kind == _NORMAL and p.text not in chosen]
        out = [_field(1, p.content()) for p in first]
        for rank, word in enumerate(words):
            out.append(_field(1, _content(word, -1.0 - rank / (len(words) + 1), _NORMAL)))
        out += [_field(1, _content(text, _LETTER_SCORE, _NORMAL)) for text in rest]
        # Fields of a message that comes twice are merged: the later ones count.
        size = len(first) + len(words) + len(rest)
        trainer = b"\x18\x01" + b"\x20" + _varint(size)
        return b"".join(out) + _without_pieces(self.letters) + _field(2, trainer)


class _Piece:
    def __init__(self, processor, index):
        self.text, self.score = processor.id_to_piece(index), processor.get_score(index)
        self.kind = _NORMAL
        if processor.is_unknown(index):
            self.kind = _UNKNOWN
        elif processor.is_control(index):
            self.kind = _CONTROL
        elif processor.is_byte(index):
            self.kind = _BYTE

    def content(self):
        return _content(self.text, self.score, self.kind)


def _is_letter(character):
    return unicodedata.category(character)[0] in "LMN" or character in _JOINERS


# The wire format of protocol buffers, of which sentencepiece_model.proto needs this much:
# pieces are field 1 of the model, the trainer's settings field 2 (3: kind of model, 1 being
# unigram; 4: size). A piece has its text (1), score (2) and kind (3).


def _content(text, score, kind):
    text = text.encode("utf-8")
    score = b"\x15" + struct.pack("<f", score)
    return _field(1, text) + score + b"\x18" + _varint(kind)


def _field(number, content):
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def _without_pieces(proto):
    """The serialised model less its pieces; all its fields at the top are messages."""
    out, place = [], 0
    while place < len(proto):
        start, (tag, place) = place, _read_varint(proto, place)
        length, place = _read_varint(proto, place)
        place += length
        if tag != 1 << 3 | 2:
            out.append(proto[start:place])
    return b"".join(out)


def _read_varint(data, place):
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
