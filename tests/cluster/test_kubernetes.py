"""The Job for Kubernetes: its fields, and its very command and environment as processes on this machine."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from verydeep.search import Server
