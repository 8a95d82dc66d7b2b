"""Files with a line for each of some steps, that go on where a resumed run goes on."""

import csv
import io
import json
import pathlib

from keras_elf.atomic_file import replaced


class RecordFile:
    """A JSON-lines or CSV file whose records have a `step`.

    Args:
        path: path of the file; its directory is made if it is not there.
        columns: list of names for CSV, or `None` for JSON lines.
    """

    def __init__(self, path, columns=None):
        self.path, self.columns, self._file = pathlib.Path(path), columns, None

    def open(self, step, resuming, owner):
        """Open for appending after `step`.

        Records of later steps are of a run that died after its last checkpoint. A resumed
        run writes them again, so they go; otherwise the file is refused.

        Raises:
            ValueError: if the file holds other things, or records that would be lost.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept, later = [], 0
        if self.path.exists() and not self.path.is_file():
            # Nothing can be taken back from a pipe or a device, nor may they be replaced.
            self._file = open(self.path, "w", encoding="utf-8", newline="")
            self._file.writelines(self._header())
            return
        if self.path.exists():
            for number, line in enumerate(self._lines(), start=1):
                found = self._step(line, number)
                if found is None:
                    continue
                kept += [line] if found <= step else []
                later += found > step
            if later and not resuming:
                raise ValueError(
                    f"`{owner}`: {self.path} holds records of another run, up to a later step "
                    f"than {step}. Use another path, or move the file away."
                )
            with replaced(self.path) as file:
                file.writelines([*self._header(), *kept])
            self._file = open(self.path, "a", encoding="utf-8", newline="")
            return
        self._file = open(self.path, "w", encoding="utf-8", newline="")
        self._file.writelines(self._header())

    def append(self, record):
        """Write a record, which a process that dies after that leaves behind."""
        if self.columns is None:
            line = json.dumps(record, ensure_ascii=False) + "\n"
        else:
            line = _csv_line([record.get(name, "") for name in self.columns])
        self._file.write(line)
        self._file.flush()

    def close(self):
        if self._file is not None:
            self._file.close()
            self._file = None

    def _header(self):
        return [] if self.columns is None else [_csv_line(self.columns)]

    def _lines(self):
        try:
            # Not `splitlines`: JSON leaves in texts other characters that this takes for ends.
            text = self.path.read_bytes().decode("utf-8")
            lines = io.StringIO(text, newline="\n").readlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is not text in UTF-8: {error}") from None
        # A process that was killed may have left half a line at the end.
        lines = lines[: None if not lines or lines[-1].endswith("\n") else -1]
        if self.columns is None or not lines:
            return lines
        if next(csv.reader(lines[:1])) != list(self.columns):
            raise ValueError(
                f"{self.path} has other columns than this log: {lines[0].strip()!r}. Use another "
                "path, or move the file away."
            )
        return lines[1:]

    def _step(self, line, number):
        if not line.strip():
            return None
        try:
            if self.columns is None:
                return int(json.loads(line)["step"])
            return int(next(csv.reader([line]))[self.columns.index("step")])
        except (ValueError, KeyError, IndexError, TypeError):
            raise ValueError(
                f"{self.path}: line {number} is not a record of this log: {line.strip()[:80]!r}. "
                "Use another path, or move the file away."
            ) from None


def _csv_line(values):
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()
