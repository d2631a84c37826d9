"""Blocks are found by proof, in the order of the data, and refused where closing them would not be exact."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.analysis._families import FAMILIES
from tests.analysis._models import Own, mlp, shaken
from torch import Tensor, nn

from verydeep.analysis import RefusedBlock, find_blocks, refusal_lines
from verydeep.errors import UserError
from verydeep.models import create_model
from verydeep.nn import HighwayStack, RecurrentHighway

X = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", FAMILIES)
def test_exactly_the_layers_of_each_family_are_found(name: str) -> None:
    family = FAMILIES[name]
    model = family.model()
    blocks = find_blocks(model, family.example(), family.named)
    assert tuple(block.name for block in blocks) == family.layers
    assert {block.kind for block in blocks} == {"residual" if family.named is None else "named"}


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.sublayers])
def test_attention_and_feed_forward_are_found_one_by_one(name: str) -> None:
    family = FAMILIES[name]
    blocks = find_blocks(family.model(), family.example(), level="sublayer")
    assert tuple(block.name for block in blocks) == family.sublayers
    assert {block.kind for block in blocks} == {"branch"}


def test_highway_layers_are_found_beside_residual_blocks() -> None:
    model = nn.Sequential(Block(plus), HighwayStack(8, 2), Block(plus))
    found = [(block.name, block.kind) for block in find_blocks(model, X)]
    assert found == [("0", "residual"), ("1.0", "highway"), ("1.1", "highway"), ("2", "residual")]


def test_models_with_highway_layers_have_the_same_layers_as_before() -> None:
    assert [block.name for block in find_blocks(shaken(Own), torch.randn(2, 1, 6, 6))] == [
        "first", "any.0", "stack.0", "stack.1", "stack.2", "narrow",
    ]  # fmt: skip
    assert {block.kind for block in find_blocks(mlp(), torch.randn(2, 1, 6, 6))} == {"highway"}


def test_blocks_of_our_residual_network_that_change_the_shape_are_left_out() -> None:
    model = create_model("resnet-110", blocks=2, widths=[4, 8, 8], stem=4, input_shape=(1, 8, 8))
    names = [block.name for block in find_blocks(model, torch.randn(2, 1, 8, 8))]
    assert "blocks.2" not in names
    assert {"blocks.0", "blocks.1", "blocks.3"} <= set(names)


class Block(nn.Module):
    """A block that combines its input and what it computes by any function."""

    def __init__(self, combine: Callable[["Block", Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.inner, self.combine = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8)), combine
        self.dropout, self.scale, self.norm = nn.Dropout(0.5), nn.Parameter(torch.ones(8)), nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Any:
        return self.combine(self, x, self.inner(x))


def plus(block: Block, x: Tensor, h: Tensor) -> Tensor:
    return x + h


def in_place(block: Block, x: Tensor, h: Tensor) -> Tensor:
    h += x
    return h


def in_place_on_the_input(block: Block, x: Tensor, h: Tensor) -> Tensor:
    return x.add_(h)


def reshaped(block: Block, x: Tensor, h: Tensor) -> Tensor:
    return torch.add(x.flatten(0, 1), h.flatten(0, 1)).view_as(x)


def scaled(block: Block, x: Tensor, h: Tensor) -> Tensor:
    return x + block.dropout(block.scale * h)  # type: ignore[no-any-return]


def subtracted(block: Block, x: Tensor, h: Tensor) -> Tensor:
    return x - 0.5 * h


def cloned(block: Block, x: Tensor, h: Tensor) -> Tensor:
    return block.dropout(x.clone() + h).contiguous()  # type: ignore[no-any-return]


@pytest.mark.parametrize("combine", [plus, in_place, in_place_on_the_input, reshaped, scaled, subtracted, cloned])
def test_it_does_not_matter_how_the_addition_is_written(combine: Any) -> None:
    model = nn.Sequential(nn.Linear(8, 8), Block(combine), nn.Linear(8, 3))
    assert [block.name for block in find_blocks(model, X)] == ["1"]


class Relu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.inner(x))


def test_a_relu_after_the_addition_must_leave_the_input_as_it_is() -> None:
    assert [block.name for block in find_blocks(nn.Sequential(nn.ReLU(), Relu(), Relu()), X)] == ["1", "2"]
    assert [block.name for block in find_blocks(nn.Sequential(Relu(), Relu()), X)] == ["1"]


@pytest.mark.parametrize(
    "combine",
    [
        lambda block, x, h: h,
        lambda block, x, h: 2 * x + h,
        lambda block, x, h: x + h + x,
        lambda block, x, h: x + block.scale,  # a constant, such as a position embedding
        lambda block, x, h: x.transpose(0, 1).reshape(x.shape) + h,
        lambda block, x, h: torch.add(h, x, alpha=2),
        lambda block, x, h: (x + h).mul_(2),
        lambda block, x, h: torch.relu(x + h),
    ],
)
def test_what_only_looks_like_a_residual_block_is_not_found(combine: Any) -> None:
    with pytest.raises(UserError, match="no highway layers and no residual blocks"):
        find_blocks(nn.Sequential(nn.Linear(8, 8), Block(combine)), X)


def test_post_norm_networks_get_a_hint_with_the_names_of_their_layers() -> None:
    family = FAMILIES["bert"]
    with pytest.raises(UserError, match=r"post-norm.*blocks= or --blocks, such as 'bert.encoder.layer.\*'"):
        find_blocks(family.model(), family.example())


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block(plus)

    def forward(self, x: Tensor) -> Tensor:
        return self.block(self.block(x))  # type: ignore[no-any-return]


class Sides(nn.Module):
    """Two blocks with a second output, of which the model uses the first block's."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (Block(lambda block, x, h: (x + h, h)) for _ in range(2))

    def forward(self, hidden: dict[str, Tensor]) -> Tensor:
        x, used = self.first(hidden["x"])
        return self.second(x)[0] + used  # type: ignore[no-any-return]


def test_shared_modules_and_used_side_outputs_are_refused() -> None:
    with pytest.raises(UserError, match="'block' cannot be closed: it is applied more than once"):
        find_blocks(Shared(), X)
    with pytest.raises(UserError, match="'block' is applied more than once and cannot be closed"):
        find_blocks(Shared(), X, ["block"])
    inputs = {"hidden": {"x": X}}
    assert [block.name for block in find_blocks(Sides(), inputs)] == ["second"]
    with pytest.raises(UserError, match=r"'first' cannot be closed: it also returns \[1\], which the network uses"):
        find_blocks(Sides(), inputs, ["first"])


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (["layers.*"], "unknown module"),
        (["0"], r"'0' cannot be closed: it takes \(2, 5, 8\) and returns \(2, 5, 4\)"),
        (["2", "2.inner"], "both '2' and '2.inner'"),
    ],
)
def test_what_cannot_be_named_is_refused_with_the_reason(blocks: list[str], message: str) -> None:
    model = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 8), Block(plus))
    with pytest.raises(UserError, match=message):
        find_blocks(model, X, blocks)


def test_finding_changes_nothing() -> None:
    model = nn.Sequential(Block(in_place_on_the_input)).train()
    x, before = X.clone(), {name: value.clone() for name, value in model.state_dict().items()}
    find_blocks(model, x)
    assert model.training
    assert model[0].training
    assert not model[0]._forward_hooks
    assert "forward" not in vars(model[0])
    assert torch.equal(x, X)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


class Wider(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.shortcut = nn.Linear(8, 12), nn.Linear(8, 12)

    def forward(self, x: Tensor) -> Tensor:
        return self.shortcut(x) + self.inner(x)  # type: ignore[no-any-return]


class Steps(nn.Module):
    """Residual blocks in a row, then modules that cannot be closed, one per reason."""

    def __init__(self, refused: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(plus), Block(plus)])
        self.refused = refused

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        x = self.refused(x)
        return x[0] + x[1] if isinstance(x, tuple) else x


def two_outputs(block: Block, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    return x + h, h


def post_norm(block: Block, x: Tensor, h: Tensor) -> Tensor:
    return block.norm(x + h)  # type: ignore[no-any-return]


def doubled(block: Block, x: Tensor, h: Tensor) -> Tensor:
    return 2 * x + h


def no_addition(block: Block, x: Tensor, h: Tensor) -> Tensor:
    return h


class Tied(Shared):
    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(super().forward(x))


class Idle(nn.Module):
    """A block that no sample reaches."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block(plus)

    def forward(self, x: Tensor) -> Tensor:
        return x


REFUSED: dict[str, tuple[Callable[[], nn.Module], str, str]] = {
    "shape": (Wider, "refused", r"turns \(2, 5, 8\) into \(2, 5, 12\)"),
    "shared": (Tied, "refused.block", "applied more than once"),
    "side output": (lambda: Block(two_outputs), "refused", r"also returns \[1\], which the network uses"),
    "post-norm": (lambda: Block(post_norm), "refused", "normalises after the addition"),
    "clamp": (Relu, "refused", "a ReLU or clamp after the addition changes its input"),
    "changed input": (lambda: Block(doubled), "refused", "not its unchanged input plus something"),
    "unused": (Idle, "refused.block", "the example does not reach it"),
    "recurrent": (lambda: RecurrentHighway(8, 8), "refused", "at every step"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_blocks_are_listed_with_the_reason(reason: str) -> None:
    make, name, message = REFUSED[reason]
    blocks = find_blocks(Steps(make()), X)
    assert [block.name for block in blocks] == ["blocks.0", "blocks.1"]
    (refused,) = blocks.refused
    assert (refused.name, refused.reason) == (name, reason)
    assert re.search(f"'{name}' cannot be closed: .*{message}", refused.message)
    (line,) = refusal_lines(blocks.refused)
    assert line.startswith("1 block cannot be closed (")
    assert line.endswith(f"): {name}")


def test_modules_of_the_same_class_without_an_addition_are_refused() -> None:
    blocks = find_blocks(Steps(Block(no_addition)), X)
    assert [(each.name, each.reason) for each in blocks.refused] == [("refused", "changed input")]


def test_parts_that_no_module_returns_are_refused_layer_by_layer() -> None:
    def twice(block: Block, x: Tensor, h: Tensor) -> Tensor:
        x = x + h
        return x + x.tanh() * 0.5

    model = nn.Sequential(Block(plus), Block(twice))
    assert not find_blocks(model, X).refused
    blocks = find_blocks(model, X, level="sublayer")
    assert [block.name for block in blocks] == ["0"]
    assert [(each.name, each.reason) for each in blocks.refused] == [("1", "parts")]
    with pytest.raises(UserError, match="no module of its own returns"):
        find_blocks(nn.Sequential(Block(twice)), X, level="sublayer")


def test_what_can_be_closed_is_not_refused() -> None:
    for name in ("gpt2", "llama", "qwen", "vit", "convnext"):
        family = FAMILIES[name]
        assert find_blocks(family.model(), family.example()).refused == ()
    family = FAMILIES["resnet"]
    assert [each.name for each in find_blocks(family.model(), family.example()).refused] == ["layer2.0"]


def test_reasons_are_counted_and_the_first_names_listed() -> None:
    refused = [RefusedBlock(f"blocks.{n}", "shape", "") for n in range(5)] + [RefusedBlock("last", "shared", "")]
    assert refusal_lines(refused) == [
        "5 blocks cannot be closed (the output has another shape than the input): blocks.0, blocks.1, blocks.2 "
        "and 2 more",
        "1 block cannot be closed (applied more than once): last",
    ]
