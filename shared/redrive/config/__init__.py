"""config.toml: its shape, its reading, and what is said about its mistakes."""

from __future__ import annotations

from redrive.config.folders import (
    default_runtime_dir,
    default_state_dir,
    find_config,
    node_name,
    runtime_dir,
    state_dir,
    store_url,
)
from redrive.config.load import Loaded, load, load_client
from redrive.config.plan import Plan, changes
from redrive.config.problems import ConfigRejected, Problem
from redrive.config.sections import Config
from redrive.config.show import show, show_as_json

__all__ = [
    "Config",
    "ConfigRejected",
    "Loaded",
    "Plan",
    "Problem",
    "changes",
    "default_runtime_dir",
    "default_state_dir",
    "find_config",
    "load",
    "load_client",
    "node_name",
    "runtime_dir",
    "show",
    "show_as_json",
    "state_dir",
    "store_url",
]
