"""Networks that are not runs: a user's own model from a Python file, and a Hugging Face checkpoint on disk."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verydeep.cli._run_options import data_label, printable, subsample
from verydeep.cli._status import status
from verydeep.errors import UserError, install_command, shorten
from verydeep.files import require_regular
from verydeep.words import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn

    from verydeep.analysis import Data
    from verydeep.objectives import Objective

_BATCH = 8  # sequences
_LONGEST = 256  # tokens of a sequence, by default
_MOST_LAYERS = 100_000
_FEWEST = 10  # sequences; fewer say nothing about a layer
_ROUNDING = 1e-3  # of the spread of logits; those of a causal model are usually equal to the bit
_PIECE = 2**20  # characters of a text that are tokenised at once
_ABOUT_PICKLES = "only .safetensors files are loaded, because other files may run code"

_TOKENISERS = ("tokenizer*", "vocab*", "*.model", "merges.txt")  # files of which a tokeniser has at least one


@dataclass(frozen=True)
class ModelWithData:
    """A network and what it is analysed on.

    Attributes:
        label: What summaries call the network.
        model: The network.
        data: The samples.
        where: What results call the samples.
        samples: How many there are; None if that is not known before they are read.
        measured: The samples on which the layers used are counted.
        measured_where: What results call them.
        train: The samples on which the order of closing is selected; None if that is `measured`.
        objective: What is measured; None if it follows from the data.
        selected_on: What results call `train`.
    """

    label: str
    model: nn.Module
    data: Data
    where: str
    samples: int | None
    measured: Data
    measured_where: str
    train: Data | None
    objective: Objective | None
    selected_on: str = "train"


def load_own_model(
    place: str, source: str | None, split: str | None, samples: int | None, root: Path | None
) -> ModelWithData:
    """Call a function of the user that returns a model, or a model, its batches and perhaps an objective.

    Args:
        place: The function, `FILE.py:FUNCTION`.
        source: The name or path of the data, if the function does not return any.
        split: The split of that data; by default, the validation data or, if there is none, the training data.
        samples: At most this number of random samples.
        root: Where known datasets are stored.
    """
    from torch import nn

    made = _call(place)
    model, *rest = made if isinstance(made, tuple) else (made,)
    if not isinstance(model, nn.Module) or len(rest) > 2:
        raise UserError(
            f"{place} must return a torch module, or a module and batches, or these and an objective; "
            f"got {type(made).__name__}"
        )
    if rest and source is not None:
        raise UserError(f"{place} returns data itself; leave out --data")
    for option, value in (("--split", split), ("--samples", samples)):
        if rest and value is not None:
            raise UserError(f"{place} returns data itself, of which all is used; leave out {option}")
    if rest:
        data, objective = rest[0], rest[1] if len(rest) > 1 else None
        where = printable(place)
        return ModelWithData(place, model, data, where, None, data, where, None, objective, where)
    if source is None:
        raise UserError(f"{place} returns a model only; say what it is measured on: --data PATH_OR_NAME")
    from verydeep.data import load_dataset

    with status(f"reading {source}"):
        dataset = load_dataset(source, root)
    name = split or ("train" if dataset.valid is None else "valid")
    part = getattr(dataset, name)
    if part is None:
        raise UserError(f"--split {name}: {source} has no such split")
    used = subsample(part, samples)
    measured = subsample(dataset.train, samples) if name == "test" else used  # never count layers on the test data
    train = subsample(dataset.train, samples) if name == "valid" else None
    label = data_label(source, "")
    measured_where = f"{label}, {'train' if name == 'test' else name}"
    return ModelWithData(place, model, used, f"{label}, {name}", len(used), measured, measured_where, train, None)


def _call(place: str) -> Any:  # noqa: ANN401 - what the user's function returns
    file, _, function = place.rpartition(":")
    path = Path(file)
    if not file or not function.isidentifier():
        raise UserError(f"--model {place}: give a Python file and the name of a function in it, such as model.py:build")
    if not path.is_file():
        raise UserError(f"--model {place}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UserError(f"--model {place}: {path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses and pickles of the file look their module up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError(f"--model {place}: {path} fails with {_describe(error)}") from error
    make = getattr(module, function, None)
    if not callable(make):
        raise UserError(f"--model {place}: {path} has no function '{function}'")
    try:
        return make()
    except (Exception, SystemExit) as error:
        raise UserError(f"--model {place}: {function}() fails with {_describe(error)}{_line(error, path)}") from error


def try_objective(place: str, subject: ModelWithData) -> None:
    """Use the objective that a function of the user returned once, so that its mistakes are found before a long run."""
    from verydeep.analysis import evaluate_model, some_samples

    if subject.objective is None:
        return
    try:
        few = some_samples(subject.data, 2, objective=subject.objective)
        evaluate_model(subject.model, few, objective=subject.objective)
    except UserError:
        raise
    except Exception as error:  # the user's code may raise anything
        line = _line(error, Path(place.rpartition(":")[0]))
        kind = type(subject.objective).__name__
        raise UserError(f"--model {place}: the objective {kind} fails with {_describe(error)}{line}") from error


def _line(error: BaseException, path: Path) -> str:
    """The last line of a file that an error went through."""
    steps = traceback.extract_tb(error.__traceback__)
    lines = [step.lineno for step in steps if Path(step.filename) == path.resolve() or step.filename == str(path)]
    return f" (line {lines[-1]})" if lines else ""


def _describe(error: BaseException) -> str:
    """An error of the user's code in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def load_checkpoint(folder: Path, text: Path | None, context: int | None, samples: int | None) -> ModelWithData:
    """Load a language model of transformers from a folder, and cut a text into sequences of its tokens.

    Nothing is downloaded, no code of the checkpoint runs, and no pickle is loaded.

    Args:
        folder: The folder, as `save_pretrained` writes it.
        text: A text file.
        context: Tokens per sequence; by default, 256 or as many as the model takes.
        samples: At most this number of sequences, evenly spaced.
    """
    from verydeep.objectives import MaskedLanguageModel

    if text is None:
        raise UserError(f"--hf {folder}: say what the model is measured on: --text FILE")
    content = _read_text(text)
    _check_folder(folder)
    with status(f"loading {folder}"):
        tokenizer, model, objective = _load(folder)
    longest = _longest_sequence(model)
    length = min(_LONGEST, longest) if context is None else context
    if not 2 <= length <= longest:
        raise UserError(f"--context {length}: give at least 2 tokens and at most {longest}, which the model takes")
    with status(f"reading {text}"):
        rows = _sequences(text, tokenizer, content, length)
    _check_tokens(folder, model, rows, objective)
    if samples is not None:
        if samples < _FEWEST:
            raise UserError(f"--samples must be at least {_FEWEST}, got {samples}")
        import torch

        rows = rows[torch.linspace(0, len(rows) - 1, min(samples, len(rows))).long()]
    half = len(rows) // 2
    data, measured, train = (list(part.split(_BATCH)) for part in (rows, rows[half:], rows[:half]))
    name, sequences = printable(text.name), f"sequences of {length} tokens"
    if isinstance(objective, MaskedLanguageModel):
        sequences += f", {objective.share:.0%} of which are masked"
    return ModelWithData(
        str(folder),
        model,
        data,
        f"{name}, {sequences}",
        len(rows),
        measured,
        f"the second half of {name}, {sequences}",
        train,
        objective,
        f"the first half of {name}",
    )


def _read_text(path: Path) -> str:
    try:
        content = require_regular(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"--text {path}: the file is not UTF-8 text ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise UserError(f"--text {path} cannot be read: {error.strerror or error}") from error
    if not content.strip():
        raise UserError(f"--text {path}: the file is empty")
    return content


def _check_folder(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise UserError(f"--hf {folder}: give a folder with a config.json, as save_pretrained writes it")
    if not any(folder.glob("*.safetensors")):
        raise UserError(f"--hf {folder}: there are no weights in it; {_ABOUT_PICKLES}")
    if not any(any(folder.glob(pattern)) for pattern in _TOKENISERS):
        raise UserError(f"--hf {folder}: there is no tokeniser in it; save it there with its save_pretrained")


def _first_line(error: Exception) -> str:
    """The first line of a message, with those that it announces by a colon."""
    lines = (str(error).strip() or type(error).__name__).splitlines()
    end = next((number for number, line in enumerate(lines) if not line.rstrip().endswith(":")), len(lines) - 1)
    return " ".join(lines[: end + 1])


def _load(folder: Path) -> tuple[Any, nn.Module, Objective]:
    """The tokeniser, model and objective of a checkpoint."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    # A configuration may name code on a server, which this package would download and run.
    sys.modules["kernels"] = None  # type: ignore[assignment]  # Python then finds no such package
    try:
        import transformers
    except ImportError as error:
        raise UserError(f"--hf needs transformers: {install_command('transformers')}") from error
    from verydeep.objectives import CausalLanguageModel, MaskedLanguageModel

    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    # What matters of its long tables is checked below.
    transformers.utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **local)
        _check_config(folder, config)
        masked = any("MaskedLM" in name for name in config.architectures or ())
        kind: Any = transformers.AutoModelForMaskedLM if masked else transformers.AutoModelForCausalLM
        safe: dict[str, Any] = {"use_safetensors": True, "weights_only": True, "ignore_mismatched_sizes": True}
        model, weights = kind.from_pretrained(folder, output_loading_info=True, **safe, **local)
        _check_weights(folder, model, weights)
    except UserError:
        raise
    except Exception as error:  # transformers raises all kinds
        raise UserError(f"--hf {folder} cannot be loaded as a language model: {_first_line(error)}") from error
    try:
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder, **local)
    except Exception as error:
        raise UserError(f"--hf {folder}: its tokeniser cannot be loaded: {_first_line(error)}") from error
    if masked and tokenizer.mask_token_id is None:
        raise UserError(f"--hf {folder}: the tokeniser of this masked language model has no mask token")
    return tokenizer, model, MaskedLanguageModel(tokenizer.mask_token_id) if masked else CausalLanguageModel()


def _check_config(folder: Path, config: Any) -> None:  # noqa: ANN401
    layers = getattr(config, "num_hidden_layers", None) or 0
    if layers > _MOST_LAYERS:
        raise UserError(f"--hf {folder}: a network has at most {_MOST_LAYERS:,} hidden layers, got {shorten(layers)}")
    code = getattr(config, "_attn_implementation", None)
    if code is not None and "/" in str(code):
        raise UserError(f"--hf {folder}: config.json names code to download, {shorten(code)}; remove that entry")


def _check_weights(folder: Path, model: nn.Module, weights: dict[str, Any]) -> None:
    """Refuse a checkpoint that does not hold all weights; transformers would use random ones in their place."""
    missing = sorted(weights["missing_keys"])
    mismatched = sorted(weights["mismatched_keys"])
    if missing:
        raise UserError(
            f"--hf {folder}: {plural(len(missing), 'tensor')} of this {type(model).__name__} "
            f"{'is' if len(missing) == 1 else 'are'} not in the checkpoint, such as {missing[0]}; "
            "is it a language model, and does config.json describe it?"
        )
    if mismatched:
        name, stored, expected = mismatched[0]
        raise UserError(
            f"--hf {folder}: {name} has shape {tuple(stored)} in the checkpoint, but {tuple(expected)} "
            "according to config.json"
        )


def _longest_sequence(model: Any) -> int:  # noqa: ANN401
    """The most tokens that a model takes."""
    from torch import nn

    config = model.config.get_text_config()
    longest = int(getattr(config, "max_position_embeddings", _LONGEST) or _LONGEST)
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            longest = min(longest, module.num_embeddings - module.padding_idx - 1)  # RoBERTa counts from there
    return longest


def _check_tokens(folder: Path, model: Any, rows: Tensor, objective: Objective) -> None:  # noqa: ANN401
    """Refuse tokens that the model does not have, and a model that sees the tokens that it is to predict."""
    import torch

    from verydeep.objectives import CausalLanguageModel

    known, last = getattr(model.get_input_embeddings(), "num_embeddings", None), int(rows.max())
    if known is not None and last >= known:
        raise UserError(
            f"--hf {folder}: its tokeniser gives token numbers up to {last}, but the model only has tokens 0 to "
            f"{known - 1}; is it that of another model?"
        )
    if not isinstance(objective, CausalLanguageModel):
        return
    half = rows.shape[1] // 2
    changed = torch.cat([rows[:1, :half], rows[1:2, half:]], dim=1)
    try:
        with torch.no_grad():
            first, second = (model(tokens).logits[:, :half].float() for tokens in (rows[:1], changed))
    except Exception as error:  # the model's code may raise anything
        raise UserError(f"--hf {folder}: this {type(model).__name__} fails on tokens: {_first_line(error)}") from error
    rounding = max(_ROUNDING, 4 * torch.finfo(model.dtype).eps)
    if (first - second).abs().max() > rounding * first.std():
        raise UserError(
            f"--hf {folder}: the predictions of this {type(model).__name__} depend on the tokens that follow, so it is "
            "no causal language model; a masked one has 'MaskedLM' in the architectures of its config.json"
        )


def _sequences(path: Path, tokenizer: Any, content: str, length: int) -> Tensor:  # noqa: ANN401
    """The tokens of a text in rows; what is left over at the end is not used."""
    import torch

    only: dict[str, Any] = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
    pieces = [torch.tensor(tokenizer(piece, **only)["input_ids"], dtype=torch.long) for piece in _pieces(content)]
    tokens = torch.cat(pieces)
    rows = len(tokens) // length
    if rows < _FEWEST:
        raise UserError(
            f"--text {path}: {plural(len(tokens), 'token')} make {plural(rows, 'sequence')} of {length} tokens, and at "
            f"least {_FEWEST} are needed; give a longer text, or a smaller --context"
        )
    return tokens[: rows * length].view(rows, -1)


def _pieces(content: str) -> Iterator[str]:
    """A text in pieces of whole lines, because tokenisers need two hundred times the memory of what they are given."""
    start = 0
    while start < len(content):
        end = start + _PIECE
        if end < len(content):
            cut = content.rfind("\n", start, end) + 1 or content.rfind(" ", start, end)
            end = cut if cut > start else end
        yield content[start:end]
        start = end
