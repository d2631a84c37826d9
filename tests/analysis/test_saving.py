"""Results on disk, and several looks at one model at the same time."""

import dataclasses
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from verydeep.analysis import (
    Findings,
    GateStatistics,
    LesionStudy,
    class_routing,
    depth_usage,
    gate_statistics,
    greedy_lesions,
    lesion_study,
    load_findings,
    load_result,
    pair_lesions,
    prune,
    prune_report,
    save_findings,
    save_result,
    signal_flow,
)
from verydeep.errors import UserError

from ._models import conv, mlp, shaken, split


def findings() -> Findings:
    model, data = shaken(mlp), split()
    usage = depth_usage(greedy_lesions(model, data, "train"), 0.2)
    return Findings(
        gates=gate_statistics(shaken(conv), split(10, (1, 16, 16))),
        routing=class_routing(model, data, ("a", "b", "ç")),
        lesions=lesion_study(model, data, "train"),
        pairs=pair_lesions(model, data, "train"),
        usage=usage,
        flow=tuple(signal_flow(model, data, name) for name in ("highway, trained", "plain, trained")),
        prune=prune_report(model, prune(model, usage), usage, data),
    )


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    found = findings()
    written = save_findings(found, tmp_path)
    assert {path.name for path in written} == {path.name for path in tmp_path.iterdir()}
    assert same(load_findings(tmp_path), found)
    save_result(found.observations, tmp_path / "o.npz")
    assert same(load_result(tmp_path / "o.npz"), found.observations)


def test_fewer_networks_beside_each_other_replace_more(tmp_path: Path) -> None:
    found = findings()
    save_findings(found, tmp_path)
    save_findings(Findings(flow=found.flow[:1]), tmp_path)
    assert same(load_findings(tmp_path), dataclasses.replace(found, flow=found.flow[:1]))
    assert load_findings(tmp_path / "nothing") == Findings()


def test_arrays_can_be_read_without_this_library(tmp_path: Path) -> None:
    found = lesion_study(shaken(mlp), split())
    save_result(found, tmp_path / "lesions.npz")
    with np.load(tmp_path / "lesions.npz", allow_pickle=False) as file:
        assert np.array_equal(file["loss"], found.loss)


def test_files_that_are_no_results_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "lesions.npz"
    save_result(lesion_study(shaken(mlp), split()), path)
    whole = path.read_bytes()

    def problem(kind: type[Any] | None = None) -> str:
        with pytest.raises(UserError) as error:
            load_result(path, kind)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "holds LesionStudy, which is not a GateStatistics" in problem(GateStatistics)
    middle = whole.index(b"PK", 1) // 2  # inside the compressed data of the first array
    changed = whole[:middle] + bytes(255 - byte for byte in whole[middle : middle + 20]) + whole[middle + 20 :]
    for damaged in (b"", b"nothing", whole[: len(whole) // 2], changed):
        path.write_bytes(damaged)
        assert "not a result of an analysis, or is damaged" in problem()
    path.write_bytes(whole)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {"loss": arrays["loss"] + 1e-9})
    assert "its content does not match its digest" in problem()
    header = json.loads(str(arrays["verydeep"]))
    header.pop("sha256")  # as earlier versions wrote it
    np.savez(path, **arrays | {"verydeep": np.array(json.dumps(header))})
    load_result(path)
    np.savez(path, **arrays | {"verydeep": np.array(json.dumps(header)), "loss": arrays["loss"] > 0})
    assert "loss has the type bool, expected float64" in problem()
    np.savez(path, loss=np.zeros(3))
    assert "not a result of an analysis" in problem()
    np.savez(path, verydeep=np.array('{"format": 9, "kind": "LesionStudy", "result": {}}'))
    assert "format 9, not 1" in problem()
    np.savez(path, verydeep=np.array('{"format": 1, "kind": "LesionStudy", "result": {}}'))
    assert "is damaged (KeyError" in problem(LesionStudy)
    path.unlink()
    assert "no such file" in problem()
    with pytest.raises(UserError, match="int is not a result"):
        save_result(3, path)


def test_looking_changes_nothing_and_two_can_look_at_once() -> None:
    model, data = shaken(mlp).train(), split(300)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    attributes = {name: set(vars(module)) for name, module in model.named_modules()}
    expected = lesion_study(model, data).loss, np.stack(gate_statistics(model, data).mean)
    results: dict[int, tuple[Any, Any]] = {}

    def look(number: int) -> None:
        torch.set_num_threads(1)
        results[number] = lesion_study(model, data).loss, np.stack(gate_statistics(model, data).mean)

    threads = [threading.Thread(target=look, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(same(result, expected) for result in results.values())
    assert model.training
    assert attributes == {name: set(vars(module)) for name, module in model.named_modules()}
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
