from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest

from verydeep.cli._options import INLINE, option, positional, read_options, settings_of
from verydeep.errors import UserError


@dataclass(frozen=True)
class Optim:
    name: Literal["sgd", "adam"] = "sgd"
    lr: float = 0.1
    bias_lr: float = 1.0
    nesterov: bool = False
    steps: tuple[int, ...] = ()


@dataclass(frozen=True)
class Augment:
    pad: int = 0


@dataclass(frozen=True)
class Data:
    source: str = "mnist"
    ignore: tuple[str, ...] = ()
    amount: int | float | Literal["paper"] | None = None
    seed: int = 0
    augment: Augment = field(default_factory=Augment)


@dataclass(frozen=True)
class Model:
    name: str = "mlp"
    depth: int | None = None


@dataclass(frozen=True)
class Settings:
    data: Data = field(default_factory=Data)
    model: Model = field(default_factory=Model)
    optim: Optim = field(default_factory=Optim)
    seed: int = 0


@dataclass(frozen=True)
class Example:
    """An example."""

    run: Annotated[Path, positional("RUN")]
    out: Annotated[Path | None, option("FILE", aliases=("-o",))] = None
    only: Annotated[tuple[str, ...], option("NAME,...")] = ()
    settings: Annotated[Settings, INLINE] = field(default_factory=Settings)


def read(*arguments: str) -> Example:
    return read_options(Example, "example", ["run", *arguments])


def test_the_last_part_of_a_name_is_enough_where_it_is_unique() -> None:
    assert (
        read("--lr", "0.5", "--depth=7", "--pad", "3").settings
        == read("--optim.lr=0.5", "--model.depth", "7", "--data.augment.pad", "3").settings
    )
    assert read("--lr", "0.5").settings.optim == Optim(lr=0.5)
    assert read("--augment.pad", "3").settings.data.augment.pad == 3


def test_an_option_of_that_very_name_comes_before_one_that_ends_in_it() -> None:
    settings = read("--seed", "4").settings
    assert (settings.seed, settings.data.seed) == (4, 0)
    assert read("--data.seed", "4").settings.data.seed == 4


def test_a_group_stands_for_its_name_or_source() -> None:
    settings = read("--model", "plain", "--optim", "adam", "--data", "wine.csv").settings
    assert (settings.model.name, settings.optim.name, settings.data.source) == ("plain", "adam", "wine.csv")


@pytest.mark.parametrize("lists", [["a", "b"], ["a,b"], ["a", "--ignore", "b"], ["a,", "--data.ignore=b"]])
def test_lists_may_be_repeated_or_separated_by_commas_or_spaces(lists: list[str]) -> None:
    assert [name for name in read("--data.ignore", *lists, "--lr", "1").settings.data.ignore if name] == ["a", "b"]


def test_lists_of_numbers_and_empty_ones() -> None:
    assert read("--steps", "10,20", "--steps", "30").settings.optim.steps == (10, 20, 30)
    assert read("--ignore", "").settings.data.ignore == ("",)  # a column without a name
    default = Example(Path("x"), settings=Settings(data=Data(ignore=("a",))))
    assert read_options(Example, "example", ["run", "--ignore"], default).settings.data.ignore == ()


def test_a_list_at_the_end_leaves_the_argument_that_is_required() -> None:
    found = read_options(Example, "example", ["--only", "gates", "lesions", "run"])
    assert (found.run, found.only) == (Path("run"), ("gates", "lesions"))


def test_flags_are_switched_on_and_off() -> None:
    assert read("--nesterov").settings.optim.nesterov
    for off in ("--no-nesterov", "--optim.no-nesterov", "--no-optim.nesterov"):
        assert not read("--nesterov", off).settings.optim.nesterov


@pytest.mark.parametrize(("text", "value"), [("3", 3), ("0.25", 0.25), ("paper", "paper"), ("none", None)])
def test_a_value_gets_the_first_type_that_it_fits(text: str, value: object) -> None:
    found = read("--amount", text).settings.data.amount
    assert found == value
    assert type(found) is type(value)


def test_negative_numbers_are_values_and_underscores_are_hyphens() -> None:
    assert read("--bias_lr", "-1e-3").settings.optim.bias_lr == -1e-3
    assert read("-o", "a.png").out == read("--out=a.png").out == Path("a.png")
    assert read_options(Example, "example", ["--", "-run"]).run == Path("-run")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--name", "x"], "--name is not unique: give --model.name or --optim.name"),
        (["--learning-rate", "1"], "unknown option --learning-rate; did you mean --lr?"),
        (["--optim.lrr", "1"], "unknown option --optim.lrr; did you mean --optim.lr?"),
        (["--model.lr", "1"], "unknown option --model.lr; did you mean --lr?"),
        (["--lr"], "--lr needs a value: --lr X"),
        (["--lr", "--seed", "1"], "--lr needs a value: --lr X"),
        (["--lr", "fast"], "--lr must be a number, not 'fast'"),
        (["--steps", "1,x"], "--steps must be a whole number, not 'x'"),
        (["--optim", "x"], "--optim must be sgd or adam, not 'x'"),
        (["--source", "a", "b"], "--source takes one value, but 'b' follows 'a'"),
        (["b"], "unexpected 'b'"),
        (["--nesterov=1"], "--nesterov takes no value"),
    ],
)
def test_mistakes_name_the_option(arguments: list[str], words: str) -> None:
    with pytest.raises(UserError) as error:
        read(*arguments)
    assert str(error.value).startswith(words)
    assert str(error.value).endswith("(see verydeep example --help)")


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UserError, match="missing: RUN"):
        read_options(Example, "example", ["--lr", "1"])


def test_every_setting_of_training_but_a_few_has_a_short_form() -> None:
    from verydeep.cli.commands._train import TrainOptions

    settings = settings_of(TrainOptions)
    long = {s.name for s in settings if len(s.names) == 1 and "." in s.name}
    assert long == {"data.seed", "model.init"}  # whose short forms belong to others
    names = [name for s in settings for name in s.names]
    assert len(names) == len(set(names))
    for short in ("--lr", "--depth", "--width", "--target", "--momentum", "--gate-bias", "--ignore"):
        assert short in names


def test_the_default_of_an_option_is_that_of_the_configuration() -> None:
    default = Example(Path("x"), settings=Settings(optim=Optim(lr=7.0)))
    assert read_options(Example, "example", ["run", "--depth", "3"], default).settings.optim.lr == 7.0
