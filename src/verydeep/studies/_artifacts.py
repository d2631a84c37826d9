"""Runs that workers on several machines exchange, through Optuna's artifact store.

Only finished runs are exchanged, and only those that someone needs: teachers, and the best of a group. Their files are
plain text and safetensors, and each is checked against its SHA-256 digest.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from verydeep.errors import UserError
from verydeep.files import make_folder
from verydeep.studies.storage._store import quiet_optuna

if TYPE_CHECKING:
    from optuna.artifacts._protocol import ArtifactStore
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

_FILES = ("config.json", "data.json", "environment.json", "metrics.jsonl", "model.safetensors", "summary.json")
_ATTRIBUTE = "run_files"


class Artifacts:
    """An artifact store.

    Args:
        place: A folder that all machines share, or one of Optuna's artifact stores, such as `Boto3ArtifactStore`.
    """

    def __init__(self, place: str | Path | ArtifactStore) -> None:
        self.folder = str(place) if isinstance(place, str | Path) else None
        if isinstance(place, str | Path):
            from optuna.artifacts import FileSystemArtifactStore

            make_folder(Path(place))
            place = FileSystemArtifactStore(str(place))
        self.store: ArtifactStore = place

    def upload(self, storage: BaseStorage, trial: FrozenTrial, run: Path) -> None:
        """Store a run's files with an attempt that has not ended yet."""
        from optuna.artifacts import upload_artifact

        files = {}
        for name in _FILES:
            if (run / name).exists():
                try:
                    with quiet_optuna():
                        key = upload_artifact(
                            artifact_store=self.store, file_path=str(run / name), study_or_trial=trial, storage=storage
                        )
                except OSError as error:  # a full disk, or a shared folder that has gone
                    raise UserError(f"{run.name}: cannot store {name} in the artifact store: {error}") from error
                files[name] = [key, _digest(run / name)]
        storage.set_trial_user_attr(trial._trial_id, _ATTRIBUTE, json.dumps(files))

    def download(self, trial: FrozenTrial, run: Path) -> None:
        """Fetch the files of an attempt's run into a new folder, which appears only when it is complete."""
        from optuna.artifacts import download_artifact
        from optuna.artifacts.exceptions import ArtifactNotFound

        files = _read_files(trial, run.name)
        make_folder(run.parent)
        folder = Path(tempfile.mkdtemp(prefix=f".{run.name}-", dir=run.parent))
        try:
            for name in (name for name in _FILES if name in files):
                key, digest = files[name]
                try:
                    download_artifact(artifact_store=self.store, artifact_id=key, file_path=str(folder / name))
                except (ArtifactNotFound, OSError) as error:
                    raise UserError(f"{run.name}: cannot fetch {name} from the artifact store: {error}") from error
                if _digest(folder / name) != digest:
                    raise UserError(f"{run.name}: {name} in the artifact store is damaged (its digest has changed)")
            folder.chmod(0o755)
            try:
                folder.rename(run)
            except OSError:
                if not (run / "summary.json").exists():  # another worker on this machine has fetched it meanwhile
                    raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def has_files(trial: FrozenTrial) -> bool:
    """Whether the run of an attempt is in the artifact store."""
    return _ATTRIBUTE in trial.user_attrs


def _read_files(trial: FrozenTrial, name: str) -> dict[str, tuple[str, str]]:
    """The artifact and the digest of each file of an attempt's run."""
    try:
        stored = json.loads(trial.user_attrs[_ATTRIBUTE])
        files = {file: (str(UUID(key)), str(digest)) for file, (key, digest) in stored.items()}  # a key is no path
    except (AttributeError, TypeError, ValueError) as error:
        raise UserError(f"{name}: the list of its files in the storage is damaged ({error!r})") from error
    return files


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
