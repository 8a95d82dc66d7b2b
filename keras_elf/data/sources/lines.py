"""Sources in text files: plain text, jsonl and csv."""

import csv
import json

from keras_elf import checks
from keras_elf.data.sources import files
from keras_elf.data.sources.source import Source

UNITS = ("line", "paragraph", "file")


class FileSource(Source):
    """Base of the sources that read one file after the other.

    Args:
        paths: list of str.
    """

    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        for path in self.paths:
            yield from self.read(path)

    def read(self, path):
        """Yield `(place, record)` of one file."""
        raise NotImplementedError

    def fingerprint(self):
        return f"{type(self).__name__}-{files.fingerprint(self.paths)}"


class TextSource(FileSource):
    """Plain text: a document a line, a paragraph (blank lines between) or a file.

    Args:
        paths: list of str.
        unit: `"line"`, `"paragraph"` or `"file"`. Defaults to `"line"`.
    """

    def __init__(self, paths, unit="line"):
        super().__init__(paths)
        self.unit = checks.choice("unit", unit, UNITS)

    def read(self, path):
        if self.unit == "file":
            text = files.read_whole(path)
            if text.strip():
                yield repr(path), text
            return
        paragraph, start = [], 1
        for number, line in files.read_lines(path):
            line = line.rstrip("\r\n")
            if self.unit == "line":
                if line.strip():
                    yield f"{path!r}, line {number}", line
            elif line.strip():
                start = start if paragraph else number
                paragraph.append(line)
            elif paragraph:
                yield f"{path!r}, line {start}", "\n".join(paragraph)
                paragraph = []
        if paragraph:
            yield f"{path!r}, line {start}", "\n".join(paragraph)

    def fingerprint(self):
        return f"{self.unit}-{super().fingerprint()}"


class JsonSource(FileSource):
    """A JSON value a line, or a file that is one JSON list. Blank lines are skipped."""

    def read(self, path):
        if files.stem_extension(path) == ".json" and _starts_with_list(path):
            try:
                records = json.loads(files.read_whole(path))
            except (json.JSONDecodeError, RecursionError) as error:
                raise ValueError(f"{path!r} is not valid JSON: {error}.") from None
            for index, record in enumerate(records):
                yield f"{path!r}, entry {index}", record
            return
        for number, line in files.read_lines(path):
            if line.strip():
                place = f"{path!r}, line {number}"
                try:
                    record = json.loads(line)
                except (json.JSONDecodeError, RecursionError) as error:
                    message = getattr(error, "msg", error)
                    raise ValueError(
                        f"{place}: not a JSON value ({message}). Received: {line.strip()!r:.60}"
                    ) from None
                yield place, record


class CsvSource(FileSource):
    """Comma- or tab-separated rows under a header with the names of the fields.

    Between tabs a quotation mark is a character like any other, as the format has it; a field
    holds no tab and no line end. Between commas, marks enclose fields that hold them.

    Args:
        paths: list of str.
        delimiter: str. Defaults to `None`: a tab for `.tsv`, else a comma.
    """

    def __init__(self, paths, delimiter=None):
        super().__init__(paths)
        self.delimiter = delimiter

    def read(self, path):
        delimiter = self.delimiter
        if delimiter is None:
            delimiter = "\t" if files.stem_extension(path) == ".tsv" else ","
        header = None
        for number, row in _tab_rows(path) if delimiter == "\t" else _csv_rows(path, delimiter):
            if not any(row):
                continue
            place = f"{path!r}, line {number}"
            if header is None:
                header = row
                if len(set(header)) < len(header):
                    raise ValueError(f"{place}: the header names a field twice: {header}")
                continue
            if len(row) != len(header):
                raise ValueError(
                    f"{place}: {len(row)} fields, where the header has {len(header)}: {header}"
                )
            yield place, dict(zip(header, row, strict=True))


def _tab_rows(path):
    for number, line in files.read_lines(path):
        yield number, line.rstrip("\r\n").split("\t")


def _csv_rows(path, delimiter):
    # With the module's own limit, 128 KiB, whole articles would be errors.
    csv.field_size_limit(max(csv.field_size_limit(), files.MAX_LINE_BYTES))
    lines = (line for _, line in files.read_lines(path))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    last = 0
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            reason = str(error)
            if "new-line character" in reason:  # what it advises is about Python's `open`
                reason = "a carriage return in a field without quotes. End lines with \\n"
            raise ValueError(f"{path!r}, line {reader.line_num}: {reason}.") from None
        if row is None:
            return
        yield last + 1, row
        last = reader.line_num


def _starts_with_list(path):
    for _, line in files.read_lines(path):
        if line.strip():
            return line.lstrip().startswith("[")
    return False
