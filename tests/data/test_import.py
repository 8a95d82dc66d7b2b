"""What `import keras_elf.data` pulls in, in a fresh process."""

import json
import subprocess
import sys

import pytest

import keras_elf.data

pytestmark = pytest.mark.backend_free


def test_import_needs_no_tokenizer_library():
    code = (
        "import json, sys, keras_elf.data;"
        "print(json.dumps([m for m in ('keras_hub', 'sentencepiece', 'tensorflow_text')"
        " if m in sys.modules]))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    assert json.loads(out.splitlines()[-1]) == []


def test_all_is_what_is_there():
    assert keras_elf.data.__all__ == sorted(keras_elf.data.__all__, key=lambda n: (n[0] > "Z", n))
    assert all(hasattr(keras_elf.data, name) for name in keras_elf.data.__all__)
