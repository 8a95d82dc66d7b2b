"""Adds the top-level folder `presets/` to the wheel; all else is in pyproject.toml."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["keras_elf*"]), "keras_elf.presets.data"],
    package_dir={"keras_elf.presets.data": "presets"},
    package_data={
        "keras_elf": ["py.typed", "data/corpora/*"],
        "keras_elf.presets.data": ["*/*.json", "*/*.h5", "*/assets/tokenizer/*"],
    },
)
