"""Execute the notebooks again and save their outputs: `make notebooks`."""

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from verydeep.files import write_atomic

for path in sorted(Path(__file__).parent.glob("*.ipynb")):
    notebook = nbformat.read(path, 4)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it was executed
    write_atomic(path, lambda file, book=notebook: nbformat.write(book, file))
    print(path.name)
