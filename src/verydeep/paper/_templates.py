"""The folder of the templates that pages and tables are rendered from."""

from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
