"""Residual networks of several families, small and untrained; those of transformers are built from configurations."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    ConvNextConfig,
    ConvNextForImageClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    ResNetConfig,
    ResNetForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

from verydeep.objectives import CausalLanguageModel, Classification, MaskedLanguageModel, Objective

VOCABULARY = 40
_TRANSFORMER: dict[str, Any] = {
    "num_hidden_layers": 4,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_attention_heads": 2,
}
_TOKENS: dict[str, Any] = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def gpt2() -> nn.Module:
    return GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=16, n_head=2, n_positions=32, **_TOKENS))


def llama() -> nn.Module:
    return LlamaForCausalLM(LlamaConfig(**_TRANSFORMER, **_TOKENS, num_key_value_heads=1))


def qwen() -> nn.Module:
    window: dict[str, Any] = {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 2}
    return Qwen3ForCausalLM(Qwen3Config(**_TRANSFORMER, **_TOKENS, num_key_value_heads=1, head_dim=8, **window))


def vit() -> nn.Module:
    return ViTForImageClassification(ViTConfig(**_TRANSFORMER, image_size=16, patch_size=8, num_labels=3))  # type: ignore[call-arg]


def bert() -> nn.Module:
    return BertForMaskedLM(BertConfig(**_TRANSFORMER, vocab_size=VOCABULARY, max_position_embeddings=32))


def hf_resnet() -> nn.Module:
    config = ResNetConfig(embedding_size=6, hidden_sizes=[6, 8], depths=[3, 3], layer_type="basic", num_labels=3)  # type: ignore[call-arg]
    return ResNetForImageClassification(config)


def convnext() -> nn.Module:
    sizes: dict[str, Any] = {"hidden_sizes": [6, 8], "depths": [2, 3], "num_stages": 2, "num_labels": 3}
    return ConvNextForImageClassification(ConvNextConfig(**sizes, layer_scale_init_value=0.5))


class BasicBlock(nn.Module):
    """As in torchvision: the addition and the ReLU after it are in place."""

    def __init__(self, channels: int, width: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))
        self.downsample = shortcut if stride != 1 or channels != width else None

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += identity
        return self.relu(out)  # type: ignore[no-any-return]


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 3, 1, 1), nn.BatchNorm2d(6), nn.ReLU(inplace=True))
        self.layer1 = nn.Sequential(BasicBlock(6, 6), BasicBlock(6, 6), BasicBlock(6, 6))
        self.layer2 = nn.Sequential(BasicBlock(6, 8, 2), BasicBlock(8, 8), BasicBlock(8, 8))
        self.fc = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.layer2(self.layer1(self.stem(x))).mean((2, 3)))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Family:
    """A family of networks, its objective, and the names of its blocks."""

    make: Callable[[], nn.Module]
    objective: Objective
    layers: tuple[str, ...]
    sublayers: tuple[str, ...] = ()
    named: tuple[str, ...] | None = None

    def model(self) -> nn.Module:
        """A network whose layers all matter: normalisation has seen something, and weights are large."""
        torch.manual_seed(1)
        model = self.make()
        if self.images:
            model.train()(torch.randn(8, 3, 16, 16))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        return model.eval()

    @property
    def images(self) -> bool:
        return isinstance(self.objective, Classification)

    def batches(self, samples: int = 3, batches: int = 2) -> list[Any]:
        """A list of batches, always the same."""
        g = torch.Generator().manual_seed(0)
        if self.images:
            pairs = [torch.randn(samples, 3, 16, 16, generator=g) for _ in range(batches)]
            return [(x, torch.arange(samples) % 3) for x in pairs]
        return [torch.randint(3, VOCABULARY, (samples, 10), generator=g) for _ in range(batches)]

    def example(self) -> Any:
        """Inputs of the model."""
        return self.objective.read_batch(self.batches()[0])[0]


def _names(pattern: str, *numbers: Any) -> tuple[str, ...]:
    return tuple(pattern.format(*(n if isinstance(n, tuple) else (n,))) for n in numbers)


_STAGES = ((0, 1), (0, 2), (1, 1), (1, 2))
FAMILIES = {
    "gpt2": Family(
        gpt2,
        CausalLanguageModel(),
        _names("transformer.h.{}", 0, 1, 2, 3),
        tuple(f"transformer.h.{n}.{part}" for n in range(4) for part in ("attn", "mlp")),
    ),
    "llama": Family(
        llama,
        CausalLanguageModel(),
        _names("model.layers.{}", 0, 1, 2, 3),
        tuple(f"model.layers.{n}.{part}" for n in range(4) for part in ("self_attn", "mlp")),
    ),
    "qwen": Family(
        qwen,
        CausalLanguageModel(),
        _names("model.layers.{}", 0, 1, 2, 3),
        tuple(f"model.layers.{n}.{part}" for n in range(4) for part in ("self_attn", "mlp")),
    ),
    "vit": Family(
        vit,
        Classification(),
        _names("vit.layers.{}", 0, 1, 2, 3),
        tuple(f"vit.layers.{n}.{part}" for n in range(4) for part in ("attention", "mlp")),
    ),
    "bert": Family(
        bert, MaskedLanguageModel(3, 0.4), _names("bert.encoder.layer.{}", 0, 1, 2, 3), named=("bert.encoder.layer.*",)
    ),
    "hf_resnet": Family(hf_resnet, Classification(), _names("resnet.encoder.stages.{}.layers.{}", (0, 0), *_STAGES)),
    "convnext": Family(
        convnext, Classification(), _names("convnext.encoder.stages.{}.layers.{}", (0, 0), (0, 1), (1, 0), *_STAGES[2:])
    ),
    "resnet": Family(ResNet, Classification(), ("layer1.0", "layer1.1", "layer1.2", "layer2.1", "layer2.2")),
}
warnings.filterwarnings("ignore", category=DeprecationWarning, module="transformers")
