"""What the answer warns of."""

from verydeep.depth import DepthNetwork, DepthPlan, OtherModel
from verydeep.depth._notes import make_notes

PLAN = DepthPlan(most=8, epochs=90)
NETWORK = DepthNetwork("network", "trained", "highway", 2, test_score=0.97)
WORSE = (OtherModel("logistic regression", 0.9),)


def test_a_usual_answer_has_no_notes() -> None:
    assert make_notes(2, "classification", PLAN, 100, NETWORK, WORSE, {}) == ()


def test_epochs_that_were_cut_are_mentioned() -> None:
    (note,) = make_notes(2, "classification", PLAN, 200, NETWORK, WORSE, {})
    assert "at most 90 epochs to save time, although 200 suit this data" in note


def test_what_was_shortened_and_lost_time_are_mentioned() -> None:
    plan = DepthPlan(most=8, epochs=90, minutes=10.0, revision="The rest was shortened.")
    assert make_notes(2, "classification", plan, 90, NETWORK, WORSE, {}, 600.0) == ("The rest was shortened.",)
    _, late = make_notes(2, "classification", plan, 90, NETWORK, WORSE, {}, 900.0)
    assert late.startswith("This took 15.0 minutes instead of 10")


def test_an_interval_of_all_depths_says_that_the_data_cannot_tell() -> None:
    (note,) = make_notes(1, "classification", PLAN, 90, NETWORK, WORSE, {}, interval=(0, 8))
    assert note.startswith("The interval holds every depth from 0 to 8: this data cannot tell them apart")
    assert make_notes(1, "classification", PLAN, 90, NETWORK, WORSE, {}, interval=(0, 4)) == ()


def test_extreme_targets_are_mentioned() -> None:
    (note,) = make_notes(0, "regression", PLAN, 90, NETWORK, WORSE, {}, farthest_target=12.8)
    assert note.startswith("The most extreme number to predict is 13 standard deviations from the mean.")
    assert make_notes(0, "regression", PLAN, 90, NETWORK, WORSE, {}, farthest_target=5.0) == ()


def test_the_deepest_depth_is_no_proof() -> None:
    (note,) = make_notes(8, "classification", PLAN, 90, NETWORK, WORSE, {})
    assert note.startswith("Nothing deeper than 8 was tried: ask for more (--most 16")


def test_a_linear_model_that_is_as_good_is_mentioned() -> None:
    equal = (OtherModel("logistic regression", 0.97),)
    (note,) = make_notes(2, "classification", PLAN, 90, NETWORK, equal, {})
    assert note.startswith("On test data, logistic regression classifies as well as the recommended network.")
    assert make_notes(0, "classification", PLAN, 90, NETWORK, equal, {}) == ()
    assert make_notes(2, "regression", PLAN, 90, NETWORK, equal, {}) == ()


def test_classes_that_were_not_measured_are_named() -> None:
    (note,) = make_notes(0, "classification", PLAN, 90, NETWORK, WORSE, {"rare": 2})
    assert "nothing about it: 'rare (2 samples)'" in note
