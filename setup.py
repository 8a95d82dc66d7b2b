"""Adds the top-level folder `presets/` to the wheel; all else is in pyproject.toml."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["keras_elf*"]), "keras_elf.presets"],
    package_dir={"keras_elf.presets": "presets"},
    package_data={
        "keras_elf": ["py.typed", "data/corpora/*"],
        "keras_elf.presets": ["*/*.json", "*/*.h5", "*/assets/tokenizer/*"],
    },
)
