"""Records on disk, and the README made from them."""

import json

import pytest

from benchmarks import cases, record, summary, timing

pytestmark = pytest.mark.backend_free


def figure(case, what, seconds, **more):
    times = timing.spread(seconds)
    return {"case": case, "what": what, "dtype": "float32", "time_s": times, **more}


def kept(figures, size="nano"):
    return {
        "format": record.FORMAT,
        "size": size,
        "backend": "jax",
        "date": "2030-01-02T03:04Z",
        "machine": {"cpu": "A Processor", "cores": 2, "memory_gib": 23.4, "gpu": None},
        "versions": {"python": "3.11.9", "keras": "3.15.1", "jax": "0.10.2"},
        "figures": figures,
    }


STEP = figure(
    "train_step",
    "stratified",
    [0.5, 0.6, 0.7],
    tokens_per_s=3413.3,
    matmul_share=0.42,
    flops=2.5e9,
    peak_bytes=1.5e9,
    ratio={**timing.spread([0.70, 0.72, 0.75]), "to": "per_example"},
)


def test_every_figure_of_the_readme_is_one_of_the_record(tmp_path):
    record.write(kept([STEP]), tmp_path / "a.json")
    assert summary.main(["--directory", str(tmp_path)]) == 0
    text = (tmp_path / "README.md").read_text()
    cells = "600 ms|500 ms..700 ms|0.72 (0.70..0.75)|3,413|2.5|42%|1.50 GB"
    assert cells.replace("|", " | ") in text
    for expected in ("nano on jax", "A Processor", "jax 0.10.2", "[a.json](a.json)", "2030-01-02"):
        assert expected in text
    assert "first call" not in text  # No record has one: no empty column.


def test_notes_name_what_was_extrapolated(tmp_path):
    share = [{"tokens": 1024, "share": 0.5, "extrapolated": True}]
    muon = figure("muon", "loss and gradient", [1.0], tokens=2048, muon_share=share)
    record.write(kept([muon]), tmp_path / "a.json")
    text = summary.markdown(tmp_path)
    assert "50.0% at 1k" in text and "measured at 2,048" in text


def test_a_case_measured_anew_replaces_its_figures_and_keeps_the_others(tmp_path):
    path = tmp_path / "a.json"
    other = figure("encoder", "T5", [1.0])
    record.write(kept([STEP, other]), path)
    record.write(kept([figure("train_step", "stratified", [9.0])]), path)
    medians = {f["case"]: f["time_s"]["median"] for f in record.read(path)["figures"]}
    assert medians == {"encoder": 1.0, "train_step": 9.0}


def test_another_size_takes_the_file_over(tmp_path):
    path = tmp_path / "a.json"
    record.write(kept([STEP]), path)
    record.write(kept([], size="tiny"), path)
    assert record.read(path)["figures"] == []


def test_the_name_of_a_result_holds_no_name_of_a_machine():
    made = kept([STEP])
    assert record.result_path(made).name == "2030-01-02_cpu2_jax_nano.json"
    made["machine"]["gpu"] = "NVIDIA H200"
    assert record.result_path(made).name == "2030-01-02_nvidia-h200_jax_nano.json"


def test_a_gpu_check_is_told_part_by_part(tmp_path):
    made = kept([])
    made |= {
        "format": "gpu_check 1",
        "parts": {
            "matmul": {"flops_per_s": 7.8e14, "seconds": 2.0},
            "training_elf_l": {"skipped": "3 s were left", "seconds": 0.0},
        },
    }
    (tmp_path / "gpu.json").write_text(json.dumps(made))
    text = summary.markdown(tmp_path)
    assert "780.00 TFLOP/s" in text and "skipped: 3 s were left" in text


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(ValueError, match="neither a record nor a GPU check"):
        summary.markdown(tmp_path)
    with pytest.raises(ValueError, match="is not a record"):
        record.read(tmp_path / "a.json")


def test_a_record_holds_no_path_and_no_host_name():
    import platform

    made = json.dumps(record.new(cases.Settings("tiny"), "jax", []))
    assert "/home" not in made and "/tmp" not in made
    assert f'"{platform.node()}"' not in made
