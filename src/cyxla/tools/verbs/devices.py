"""``cyxla devices``: the devices of sessions."""

from __future__ import annotations

import argparse

import cyxla.autojit.jit_session  # noqa: F401 - registers the devices that compile
from cyxla.core.runtime.device_factory import DeviceFactoryRegistry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb: none."""


def main(args: argparse.Namespace) -> int:
    """Run the verb."""
    devices = DeviceFactoryRegistry.global_().create_devices()
    for device in devices:
        print(f"{device.name}  type {device.device_type}  priority {devices.priority(device.device_type)}")
    return 0
