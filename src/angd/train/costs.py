"""What a part of a step costs on a kind of device: flops, bytes and messages, and the seconds that they take.

A part takes as long as the slower of its flops and its bytes (the roofline); sending is added, since a step waits for
it:

    seconds = max(flops / (efficiency × peak), bytes / bandwidth) + sent / link + messages × latency.
"""

import math
from dataclasses import dataclass

BLOCK = 512  # columns of a panel of a distributed factorisation


@dataclass(frozen=True)
class Machine:
    """One kind of device, and what connects several.

    **Arguments:**

    - `name`: of the device.
    - `peak`: flop/s of a matrix product in the precision of the step.
    - `bandwidth`: bytes/s of memory.
    - `memory`: bytes.
    - `link`: bytes/s into a device from others of its host.
    - `network`: bytes/s into a device from other hosts.
    - `latency`: seconds of a message.
    - `per_host`: devices of a host.
    - `half`: fraction of the peak that the useful half of a symmetric product reaches; 0.5 to 0.7.
    - `paired`: the same of kernels from factors.
    - `factor`: the same of Cholesky factorisations; 0.2 to 0.5.
    - `small`: the same of a model's own layers; 0.05 on accelerators, 0.4 on a core.
    - `assembly`: fraction of the bandwidth at which rows are written out from their factors; 0.05 to 0.1.

    **Example:** `Machine("H100", 67e12, 3.35e12, 80e9, link=450e9, network=50e9, latency=1e-5)`
    """

    name: str
    peak: float
    bandwidth: float
    memory: float
    link: float = math.inf
    network: float = math.inf
    latency: float = 0.0
    per_host: int = 8
    half: float = 0.6
    paired: float = 0.6
    factor: float = 0.4
    small: float = 0.1
    assembly: float = 0.1

    def into(self, devices: int) -> float:
        """Bytes/s into a device from the others: the slowest link decides."""
        return self.link if devices <= self.per_host else min(self.link, self.network)


@dataclass(frozen=True)
class Cost:
    """Of one part, for one device: `flops` at a `fraction` of the peak, `bytes` of memory, bytes `sent`, `messages`."""

    flops: float = 0.0
    bytes: float = 0.0
    sent: float = 0.0
    messages: float = 0.0
    fraction: float = 1.0

    def seconds(self, machine: Machine, devices: int = 1) -> float:
        """On one of several devices of a kind."""
        work = max(self.flops / (self.fraction * machine.peak), self.bytes / machine.bandwidth)
        return work + self.sent / machine.into(devices) + self.messages * machine.latency


def product(madds: float, read: float, written: float, machine: Machine) -> Cost:
    """A symmetric product, of which half is computed: `madds` multiply-adds of the full one are as many flops."""
    return Cost(madds, read + 2 * written, fraction=machine.half)


def factorisation(n: float, itemsize: int, machine: Machine) -> Cost:
    """Cholesky's n³/3."""
    return Cost(n**3 / 3, 2 * n * n * itemsize, fraction=machine.factor)


def shared_factorisation(n: float, itemsize: int, devices: int, machine: Machine) -> Cost:
    """Cholesky over a square grid of devices: each receives a row's and a column's panels, n²/√D in all."""
    side = math.sqrt(devices)
    steps = math.ceil(n / BLOCK) * (2 + 2 * math.log2(max(devices, 1)))
    return Cost(
        n**3 / (3 * devices),
        2 * n * n * itemsize / devices,
        (devices > 1) * n * n * itemsize / side,
        (devices > 1) * steps,
        machine.factor,
    )


def reduced(size: float, devices: int) -> Cost:
    """A sum over devices that all of them get: a ring sends it twice."""
    return Cost(sent=2 * size * (1 - 1 / devices), messages=2 * math.log2(devices))


def gathered(size: float, devices: int) -> Cost:
    """What lies on all devices in parts, for all of them."""
    return Cost(sent=size * (1 - 1 / devices), messages=math.log2(devices))
