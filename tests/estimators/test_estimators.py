"""What users rely on: predictions in their own types, the same bits for the same seed, frames as they are, pickling."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone  # type: ignore[import-untyped]
from sklearn.datasets import load_diabetes, load_iris  # type: ignore[import-untyped]
from sklearn.exceptions import ConvergenceWarning, NotFittedError  # type: ignore[import-untyped]
from sklearn.model_selection import GridSearchCV, cross_val_score  # type: ignore[import-untyped]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import PolynomialFeatures  # type: ignore[import-untyped]

from verydeep import analysis
from verydeep.data import DataConfig
from verydeep.errors import UserError
from verydeep.models import MLP
from verydeep.sklearn import HighwayClassifier, HighwayRegressor
from verydeep.training import ModelConfig, OptimConfig, TrainConfig, train

IRIS: tuple[np.ndarray, np.ndarray] = load_iris(return_X_y=True)
DIABETES: tuple[np.ndarray, np.ndarray] = load_diabetes(return_X_y=True)
SMALL: dict[str, Any] = {"depth": 4, "width": 8, "epochs": 10, "batch_size": 16, "metric": "loss", "random_state": 0}
CLASSIFIER = HighwayClassifier(**SMALL, lr=0.2)
REGRESSOR = HighwayRegressor(**SMALL, lr=0.05)


def people(count: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    """A frame of numbers, categories, text and gaps, and a class that depends on all of them."""
    random = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "age": random.normal(40, 10, count),
            "city": pd.Categorical(random.choice(["Bonn", "Lugano"], count)),
            "code": pd.Categorical(random.choice([7, 8, 9], count)),
            "job": random.choice(np.array(["cook", "judge", None]), count),
        }
    )
    y = np.where((frame["age"] > 42) | (frame["code"] == 7), "yes", "no")
    frame.loc[::7, "age"] = np.nan
    return frame, y


# Predictions


@pytest.mark.parametrize(
    "names",
    [
        np.array(["setosa", "versicolor", "virginica"]),
        np.array(["setosa", "versicolor", "virginica"], dtype=object),
        np.array([30, 10, 20], dtype=np.int16),
        np.array([2.0, 0.0, 1.0]),
    ],
)
def test_classes_come_back_in_their_own_type(names: np.ndarray) -> None:
    x, y = IRIS
    model = clone(CLASSIFIER).fit(x, names[y])
    assert model.classes_.dtype == model.predict(x).dtype == names.dtype
    assert list(model.classes_) == sorted(names)
    assert model.score(x, names[y]) > 0.9
    best = model.classes_[model.predict_proba(x).argmax(1)]
    assert np.array_equal(best, model.predict(x))


def test_two_classes_may_be_booleans() -> None:
    x, y = IRIS
    predicted = clone(CLASSIFIER).fit(x, y == 0).predict(x)
    assert predicted.dtype == bool
    assert (predicted == (y == 0)).all()


def test_labels_are_predicted_one_by_one() -> None:
    x, y = IRIS
    labels = np.stack([y == 0, y >= 1, x[:, 0] > 5.8], axis=1).astype(np.int32)
    model = clone(CLASSIFIER).set_params(epochs=30, class_weight="balanced").fit(x, labels)
    predicted = model.predict(x)
    assert predicted.dtype == np.int32
    assert (predicted == labels).mean() > 0.9
    assert np.array_equal(model.predict_proba(x) > 0.5, predicted)
    assert list(model.classes_) == [0, 1, 2]


def test_numbers_are_predicted_in_their_units() -> None:
    x, y = DIABETES
    model = clone(REGRESSOR).fit(x, y)
    assert model.score(x, y) > 0.4
    assert abs(model.predict(x).mean() - y.mean()) < 20
    far = clone(REGRESSOR).fit(x, 1e6 + 1e3 * y)
    np.testing.assert_allclose((far.predict(x) - 1e6) / 1e3, model.predict(x), rtol=1e-3)


def test_several_numbers_are_predicted_together() -> None:
    x, y = DIABETES
    both = np.stack([y, -1000 * y], axis=1)
    model = clone(REGRESSOR).fit(x, both)
    assert model.predict(x).shape == both.shape
    assert model.score(x, both) > 0.4
    assert model.n_outputs_ == 2


def test_a_constant_target_is_predicted() -> None:
    x, _ = DIABETES
    np.testing.assert_allclose(clone(REGRESSOR).fit(x, np.full(len(x), 7.0)).predict(x), 7, atol=0.5)


def test_a_prediction_does_not_depend_on_the_other_samples() -> None:
    x, y = DIABETES
    model = clone(REGRESSOR).fit(x, y)
    together = model.predict(x)
    assert [model.predict(row[None])[0] for row in x[:20]] == list(together[:20])


# Training


def test_the_same_random_state_gives_the_same_bits_and_leaves_the_process_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x, y = IRIS
    numpy, threads, generator = np.random.get_state(legacy=False), torch.get_num_threads(), torch.get_rng_state()
    one, two, other = (clone(CLASSIFIER).set_params(random_state=seed).fit(x, y).predict_proba(x) for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    assert str(np.random.get_state(legacy=False)) == str(numpy)
    assert torch.equal(torch.get_rng_state(), generator)
    assert torch.get_num_threads() == threads
    assert list(tmp_path.iterdir()) == []


def test_small_networks_use_one_thread_so_their_bits_do_not_depend_on_the_machine() -> None:
    x, y = DIABETES
    one = clone(REGRESSOR).fit(x, y).predict(x)
    torch.set_num_threads(2)
    try:
        assert np.array_equal(clone(REGRESSOR).fit(x, y).predict(x), one)
        assert torch.get_num_threads() == 2
        large = clone(REGRESSOR).set_params(width=400, batch_size=400, epochs=1).fit(x, y)
    finally:
        torch.set_num_threads(1)
    assert large._completed.threads is None


def test_a_random_state_of_numpy_is_drawn_from() -> None:
    x, y = IRIS
    random = np.random.RandomState(0)
    one, two = (clone(CLASSIFIER).set_params(random_state=random).fit(x, y).predict_proba(x) for _ in range(2))
    assert not np.array_equal(one, two)
    again = clone(CLASSIFIER).set_params(random_state=np.random.RandomState(0)).fit(x, y).predict_proba(x)
    assert np.array_equal(one, again)


def test_a_frame_trains_the_same_network_as_its_file(tmp_path: Path) -> None:
    frame, y = people()
    table = frame.drop(columns="code").assign(answer=y)
    for name in ("train", "test"):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    config = TrainConfig(
        DataConfig(str(tmp_path), target=("answer",)),
        ModelConfig(depth=4, width=8),
        OptimConfig(lr=0.2),
        epochs=10,
        batch_size=16,
        metric="loss",
    )
    run = train(config, tmp_path / "run", progress=False)
    model = clone(CLASSIFIER).fit(frame.drop(columns="code"), y)
    expected = run.model.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in model.network_.state_dict().items())
    assert [line.loss for line in run.metrics] == model.loss_curve_
    rows = frame.drop(columns="code")
    assert list(run.predict(rows)) == list(model.predict(rows))
    np.testing.assert_allclose(run.predict_proba(rows), model.predict_proba(rows), atol=1e-6)


def test_training_stops_early() -> None:
    x, y = IRIS
    patient = clone(CLASSIFIER).set_params(epochs=500, patience=3).fit(x, y)
    curve = patient.validation_loss_curve_
    assert patient.n_iter_ == len(patient.loss_curve_) == len(curve) < 500
    assert int(np.argmin(curve)) == patient.n_iter_ - 4
    endless = clone(CLASSIFIER).set_params(epochs=8, patience=0, validation_fraction=0).fit(x, y)
    assert endless.n_iter_ == 8
    assert endless.validation_loss_curve_ is None


def test_the_best_weights_on_validation_samples_are_kept() -> None:
    x, y = IRIS
    model = clone(CLASSIFIER).set_params(epochs=40, lr=0.5, schedule="constant", weight_decay=0.0).fit(x, y)
    best = int(np.argmin(model.validation_loss_curve_)) + 1
    assert best < model.n_iter_
    shorter = clone(CLASSIFIER).set_params(epochs=best, lr=0.5, schedule="constant", weight_decay=0.0).fit(x, y)
    assert np.array_equal(model.predict_proba(x), shorter.predict_proba(x))


def test_divergence_is_a_warning_if_there_are_weights_from_before(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = IRIS
    x = np.concatenate([x, x])
    with pytest.raises(UserError, match="use a lower learning rate than 1e\\+30"):
        clone(CLASSIFIER).set_params(lr=1e30).fit(x, np.tile(y, 2))
    from verydeep.training._trainer import Trainer

    monkeypatch.setattr(Trainer, "_has_diverged", lambda self, *_: self.state.position.epoch == 3)
    with pytest.warns(ConvergenceWarning, match="diverged in epoch 4"):
        model = clone(CLASSIFIER).fit(x, np.tile(y, 2))
    assert model.n_iter_ == 4
    assert model.score(*IRIS) > 0.6


def test_progress_is_printed_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    clone(CLASSIFIER).set_params(epochs=2).fit(*IRIS)
    assert capsys.readouterr() == ("", "")
    clone(CLASSIFIER).set_params(epochs=2, verbose=True).fit(*people())
    printed = capsys.readouterr().out
    assert "age" in printed
    assert "epoch 2/2" in printed


# DataFrames


def test_frames_are_taken_as_they_are() -> None:
    frame, y = people()
    model = clone(CLASSIFIER).set_params(epochs=30).fit(frame, y)
    assert model.score(frame, y) > 0.85
    assert list(model.feature_names_in_) == ["age", "city", "code", "job"]
    assert model.n_features_in_ == 4
    new = pd.DataFrame({"age": [np.nan, 60.0], "city": ["Paris", None], "code": [7, 9], "job": ["cook", None]})
    assert list(model.predict(new)) == ["yes", "yes"]


def test_frames_of_polars_give_the_same_network() -> None:
    frame, y = people()
    columns = {name: [None if pd.isna(cell) else cell for cell in frame[name]] for name in ("age", "city", "job")}
    codes = pl.Series("code", [str(code) for code in frame["code"]], dtype=pl.Categorical)
    other = pl.DataFrame(columns).with_columns(codes)[["age", "city", "code", "job"]]
    ours, theirs = clone(CLASSIFIER).fit(frame, y), clone(CLASSIFIER).fit(other, pl.Series(y))
    assert np.array_equal(ours.predict_proba(frame), theirs.predict_proba(other))


def test_numbers_can_be_declared_categories() -> None:
    frame, y = people()
    frame = frame.assign(code=frame["code"].astype(int))
    model = clone(CLASSIFIER).set_params(categorical=["code"]).fit(frame, y)
    assert "code" in {column.name for column in model.inputs_.preparation.categories}
    with pytest.raises(UserError, match="categorical: DataFrame has no column 'cod'; did you mean 'code'"):
        clone(CLASSIFIER).set_params(categorical=["cod"]).fit(frame, y)
    with pytest.raises(UserError, match="X is an array"):
        clone(CLASSIFIER).set_params(categorical=["code"]).fit(*IRIS)


def test_columns_are_compared_with_those_of_training() -> None:
    frame, y = people()
    model = clone(CLASSIFIER).set_params(epochs=1).fit(frame, y)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(frame[["job", "code", "city", "age"]])
    with pytest.raises(ValueError, match="now missing:\n- job"):
        model.predict(frame.drop(columns="job"))


def test_an_array_can_be_predicted_after_a_frame_of_numbers() -> None:
    x, y = IRIS
    frame = pd.DataFrame(x, columns=list("abcd"))
    model = clone(CLASSIFIER).fit(frame, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(model.predict_proba(x), model.predict_proba(frame))


def test_a_frame_needs_two_rows() -> None:
    frame, y = people()
    with pytest.raises(ValueError, match="1 sample"):
        clone(CLASSIFIER).fit(frame[:1], y[:1])


# In parts


def test_parts_are_learnt_one_by_one() -> None:
    x, y = IRIS
    order = np.random.RandomState(0).permutation(len(y))
    model = clone(CLASSIFIER)
    for _ in range(20):
        for rows in np.array_split(order, 3):
            model.partial_fit(x[rows], y[rows], classes=[0, 1, 2])
    assert model.score(x, y) > 0.9
    assert model.n_iter_ == len(model.loss_curve_) == 60


def test_parts_continue_after_pickling_with_the_same_bits() -> None:
    x, y = DIABETES
    for optimiser in ("sgd", "adam", "muon"):
        straight = clone(REGRESSOR).set_params(optimiser=optimiser, lr=0.01)
        straight.partial_fit(x[:200], y[:200])
        pickled = pickle.loads(pickle.dumps(straight))  # noqa: S301 - made here
        for model in (straight, pickled):
            model.partial_fit(x[200:], y[200:])
        assert np.array_equal(straight.predict(x), pickled.predict(x))


def test_a_fitted_estimator_learns_more() -> None:
    x, y = IRIS
    model = clone(CLASSIFIER).fit(x, y)
    before, losses = model.predict_proba(x), len(model.loss_curve_)
    model.partial_fit(x[:50], y[:50])
    assert model.n_iter_ == losses + 1
    assert not np.array_equal(model.predict_proba(x), before)
    assert np.array_equal(clone(model).fit(x, y).predict_proba(x), before)


def test_parts_must_fit_together() -> None:
    x, y = IRIS
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        clone(CLASSIFIER).partial_fit(x, y)
    model = clone(CLASSIFIER).partial_fit(x, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="classes \\[7\\], which are not among \\[0 1 2\\]"):
        model.partial_fit(x[:1], [7])
    with pytest.raises(ValueError, match="but were \\[0 1 2\\] before"):
        model.partial_fit(x, y, classes=[0, 1])
    with pytest.raises(ValueError, match="pass sample_weight instead"):
        clone(CLASSIFIER).set_params(class_weight="balanced").partial_fit(x, y, classes=[0, 1, 2])
    regressor = clone(REGRESSOR).partial_fit(*DIABETES)
    with pytest.raises(ValueError, match="2 targets, but the regressor was fitted with 1"):
        regressor.partial_fit(DIABETES[0], np.stack([DIABETES[1]] * 2, axis=1))


# The network


@pytest.mark.parametrize(("model", "data"), [(CLASSIFIER, IRIS), (REGRESSOR, DIABETES)])
def test_layers_are_closed_and_removed(model: Any, data: tuple[np.ndarray, np.ndarray]) -> None:
    x, y = data
    model = clone(model).fit(x, y)
    lesions = model.lesions(x, y)
    assert len(lesions.layers) == 3
    assert 1 - lesions.baseline.error == pytest.approx(model.score(x, y), abs=1e-5)
    pruned = model.prune(x, y, tolerance=0.5)
    assert isinstance(pruned.network_, MLP)
    assert pruned.depth == pruned.network_.config.depth < model.depth == model.network_.config.depth
    assert pruned.score(x, y) >= model.score(x, y) - 0.5
    assert pickle.loads(pickle.dumps(pruned)).score(x, y) == pruned.score(x, y)  # noqa: S301 - made here
    assert clone(pruned).fit(x, y).network_.config.depth == pruned.depth


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize(("model", "data"), [(CLASSIFIER, IRIS), (REGRESSOR, DIABETES)])
def test_estimators_may_be_shallow(model: Any, data: tuple[np.ndarray, np.ndarray], depth: int) -> None:
    x, y = data
    model = clone(model).set_params(depth=depth).fit(x, y)
    assert (model.network_.input is None, model.network_.stack) == (depth == 0, None)
    assert model.score(x, y) > 0.2
    assert pickle.loads(pickle.dumps(model)).score(x, y) == model.score(x, y)  # noqa: S301 - made here
    with pytest.raises(UserError, match="uses no highway layers"):
        model.lesions(x, y)


def test_an_unfitted_estimator_says_so() -> None:
    for call in (CLASSIFIER.lesions, CLASSIFIER.prune):
        with pytest.raises(NotFittedError):
            call(*IRIS)


@pytest.mark.parametrize(
    ("estimator", "data"),
    [(CLASSIFIER, people()), (CLASSIFIER, IRIS), (REGRESSOR, DIABETES)],
    ids=["frame", "array", "regression"],
)
def test_a_pickle_holds_plain_values_and_gives_the_same_bits(estimator: Any, data: tuple[Any, np.ndarray]) -> None:
    x, y = data
    model = clone(estimator).fit(x, y)
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301 - made here
        assert np.array_equal(copied.predict(x), model.predict(x))
        assert copied.inputs_ == model.inputs_
    assert not list(unusual(model.__getstate__()))
    assert isinstance(model.__getstate__()["_saved"]["weights"], bytes)


def unusual(value: object) -> Any:
    """Everything in a state that is neither a plain value nor an array."""
    if isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from unusual(part)
    elif not isinstance(value, str | bytes | int | float | np.ndarray | np.dtype | None):
        yield value


# With the rest of scikit-learn


def test_it_is_a_step_of_a_pipeline_and_can_be_cross_validated() -> None:
    pipeline = make_pipeline(PolynomialFeatures(2), clone(CLASSIFIER))
    assert cross_val_score(pipeline, *IRIS, cv=3).mean() > 0.85


@pytest.mark.slow
def test_settings_are_searched_in_two_processes() -> None:
    search = GridSearchCV(clone(CLASSIFIER), {"depth": [2, 5], "lr": np.array([0.0001, 0.2])}, cv=2, n_jobs=2)
    search.fit(*IRIS)
    assert search.best_params_["lr"] == 0.2
    assert search.best_score_ > 0.85
    alone = GridSearchCV(clone(CLASSIFIER), {"depth": [2, 5], "lr": [0.0001, 0.2]}, cv=2).fit(*IRIS)
    assert np.array_equal(alone.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": -1.0}, "optim.lr must be positive"),
        ({"depth": "deep"}, "HighwayClassifier: model.depth: expected int, got str 'deep'"),
        ({"optimiser": "adm"}, "optim.name: expected 'sgd' or 'adam' or 'muon'"),
        ({"metric": "rocauc"}, "did you mean 'roc_auc'"),
        ({"validation_fraction": 1.5}, "must be a fraction between 0 and 1"),
        ({"validation_fraction": 0, "patience": 3}, "patience needs validation samples; set validation_fraction"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        clone(CLASSIFIER).set_params(**settings).fit(*IRIS)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.stack([IRIS[1], IRIS[1]], axis=1), "must be labels 0 and 1"),
        (np.zeros(150), "only one class"),
        (IRIS[1][:100], "inconsistent numbers of samples"),
        (np.linspace(0, 1, 150), "Unknown label type"),
    ],
)
def test_targets_that_make_no_sense_are_refused(y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        clone(CLASSIFIER).fit(IRIS[0], y)


def test_a_fitted_estimator_knows_how_many_layers_it_uses() -> None:
    model = HighwayClassifier(depth=6, width=8, epochs=20, lr=0.1, random_state=0)
    assert not hasattr(model, "layers_needed_")
    model.fit(*IRIS)
    assert "layers_needed_" not in vars(model)  # fit does not wait for it
    assert 0 <= model.layers_needed_ <= 5
    assert model._measured is not None
    train, held_out = model._measured
    assert held_out is not None
    assert len(held_out) == 22
    usage = analysis.depth_usage(analysis.greedy_lesions(model.network_, held_out, train=train))
    assert model.layers_needed_ == len(usage.kept)
    none = HighwayClassifier(depth=6, width=8, epochs=20, lr=0.1, random_state=0, validation_fraction=0).fit(*IRIS)
    assert none._measured is not None
    assert none._measured[1] is None
    assert 0 <= none.layers_needed_ <= 5
    assert HighwayClassifier(depth=1, width=8, epochs=2, random_state=0).fit(*IRIS).layers_needed_ == 0
    assert model.prune(*IRIS, tolerance=0.5).layers_needed_ <= model.layers_needed_


def test_a_pickle_holds_the_number_and_no_samples() -> None:
    model = HighwayClassifier(depth=4, width=8, epochs=5, random_state=0).fit(*IRIS)
    with pytest.raises(AttributeError, match="read it before saving"):
        _ = pickle.loads(pickle.dumps(model)).layers_needed_  # noqa: S301
    count = model.layers_needed_
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert again.layers_needed_ == count
    assert again._measured is None
