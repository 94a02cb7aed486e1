"""Queries cuDNN for the workspace of a convolution on a GPU that this machine does not have.

The library comes with PyTorch's wheel for CUDA. Since version 9.8 its backend interface can plan
for a device that is described by its properties, without running anything. NVIDIA's documentation
of the library cudnn_graph describes the descriptors and their attributes.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckplan.torch.costs import Device, device_named

_FIRST_VERSION = 90800

_FIRST_FOR_BLACKWELL = 91900
"""The first version that was tested with GPUs of compute capability 10 and above. 9.10.2 ends the
process when it is queried about one."""

# Kinds of descriptors.
_CONVOLUTION, _CONFIGURATION, _HEURISTICS, _PLAN, _GRAPH, _TENSOR = 1, 3, 4, 5, 15, 17
_DEVICE = 38

# Attributes of each kind.
_TENSOR_ALIGNMENT, _TENSOR_TYPE, _TENSOR_SHAPE, _TENSOR_STRIDES = range(900, 904)
_TENSOR_ID = 906
_SUM_TYPE, _MODE, _DILATIONS, _STRIDES, _PADDING_AFTER, _PADDING, _DIMENSIONS = range(100, 107)
_HEURISTICS_MODE, _HEURISTICS_GRAPH, _HEURISTICS_RESULTS, _HEURISTICS_DEVICE = 200, 201, 202, 204
_PLAN_CONFIGURATION, _PLAN_WORKSPACE, _PLAN_DEVICE = 401, 402, 407
_GRAPH_OPERATIONS = 801
_DEVICE_PROPERTIES = 2702

# Types of attributes.
_DATA_TYPE, _INT64, _DOUBLE, _CONVOLUTION_MODE, _HEURISTIC_MODE, _DESCRIPTOR = 1, 3, 5, 7, 8, 15
_CHARACTERS = 24

_INSTANT, _FALLBACK = 0, 2
"""The modes of heuristics that PyTorch asks for, in this order (Conv_v8.cpp)."""

_MOST_CONFIGURATIONS = 64


@dataclass(frozen=True)
class Pass:
    """One kind of call, with cuDNN's numbers for the operation and its attributes."""

    name: str
    kind: int
    first: int
    """The attribute of the factor alpha; beta's and the convolution's follow it."""
    x: int
    w: int
    y: int


FORWARD = Pass("forward", 10, 700, x=704, w=703, y=705)
INPUT_GRADIENT = Pass("gradient of the input", 12, 706, x=710, w=709, y=711)
WEIGHT_GRADIENT = Pass("gradient of the weights", 11, 712, x=716, w=715, y=717)


@dataclass(frozen=True)
class Operand:
    """The form of a tensor."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Convolution:
    """A convolution of two or three dimensions."""

    type: str
    x: Operand
    w: Operand
    y: Operand
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilations: tuple[int, ...]


TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}
"""cuDNN's numbers for element types."""


class _RefusedError(Exception):
    """cuDNN refuses a descriptor."""


class Library:
    """cuDNN, loaded into this process."""

    def __init__(self, path: str):
        self._calls = ctypes.CDLL(path)
        self._calls.cudnnGetVersion.restype = ctypes.c_size_t
        self.version = int(self._calls.cudnnGetVersion())

    @property
    def name(self) -> str:
        """Returns its name with its version: cuDNN 9.19.0."""
        return f"cuDNN {self.version // 10000}.{self.version // 100 % 100}.{self.version % 100}"

    def destroy(self, handle: ctypes.c_void_p) -> None:
        """Frees a descriptor; works even while Python exits."""
        self._calls.cudnnBackendDestroyDescriptor(handle)

    def call(self, function: str, *arguments: Any) -> None:
        """Calls a function that returns a status. Raises _RefusedError."""
        status = getattr(self._calls, function)(*arguments)
        if status != 0:
            raise _RefusedError(f"{function} returns {status}")


class _Descriptor:
    """One of cuDNN's descriptors, which is destroyed with this object."""

    def __init__(self, library: Library, kind: int):
        self._library = library
        self.handle = ctypes.c_void_p()
        library.call("cudnnBackendCreateDescriptor", kind, ctypes.byref(self.handle))

    def __del__(self) -> None:
        self._library.destroy(self.handle)

    def set(self, attribute: int, type: int, values: Any, count: int = 1) -> None:
        self._library.call(
            "cudnnBackendSetAttribute",
            self.handle,
            attribute,
            type,
            ctypes.c_int64(count),
            ctypes.byref(values),
        )

    def set_integers(self, attribute: int, values: Sequence[int]) -> None:
        self.set(attribute, _INT64, (ctypes.c_int64 * len(values))(*values), len(values))

    def set_choice(self, attribute: int, type: int, value: int) -> None:
        """Sets an attribute whose type is an enumeration."""
        self.set(attribute, type, ctypes.c_int(value))

    def set_part(self, attribute: int, part: _Descriptor) -> None:
        self.set(attribute, _DESCRIPTOR, ctypes.c_void_p(part.handle.value))

    def finish(self) -> _Descriptor:
        self._library.call("cudnnBackendFinalize", self.handle)
        return self

    def integer(self, attribute: int) -> int:
        value, count = ctypes.c_int64(), ctypes.c_int64()
        where = ctypes.byref(count), ctypes.byref(value)
        self._library.call(
            "cudnnBackendGetAttribute", self.handle, attribute, _INT64, ctypes.c_int64(1), *where
        )
        return value.value

    def parts(self, attribute: int, kind: int) -> list[_Descriptor]:
        """Returns the descriptors that are the values of an attribute."""
        found = [_Descriptor(self._library, kind) for _ in range(_MOST_CONFIGURATIONS)]
        handles = (ctypes.c_void_p * len(found))(*(part.handle for part in found))
        count = ctypes.c_int64()
        self._library.call(
            "cudnnBackendGetAttribute",
            self.handle,
            attribute,
            _DESCRIPTOR,
            ctypes.c_int64(len(found)),
            ctypes.byref(count),
            ctypes.byref(handles),
        )
        return found[: count.value]


class Advisor:
    """cuDNN's recommendations for one device that is described by its properties."""

    def __init__(self, library: Library, device: _Descriptor):
        self.name = library.name
        self._library = library
        self._device = device
        self._known: dict[tuple[Convolution, Pass], tuple[int, ...]] = {}

    def workspaces(self, convolution: Convolution, what: Pass) -> tuple[int, ...]:
        """Returns the workspaces of cuDNN's recommendations, best first.

        Returns none if cuDNN refuses the convolution.
        """
        key = convolution, what
        if key not in self._known:
            self._known[key] = self._query(convolution, what)
        return self._known[key]

    def _query(self, convolution: Convolution, what: Pass) -> tuple[int, ...]:
        with suppress(_RefusedError):
            graph = self._graph(convolution, what)
            for mode in (_INSTANT, _FALLBACK):
                found = tuple(self._workspaces_of(self._configurations(graph, mode)))
                if found:
                    return found
        return ()

    def _graph(self, convolution: Convolution, what: Pass) -> _Descriptor:
        operation = self._new_descriptor(what.kind)
        operation.set_part(what.first + 2, self._convolution(convolution))
        operands = (what.x, convolution.x), (what.w, convolution.w), (what.y, convolution.y)
        for name, (attribute, operand) in enumerate(operands, 1):
            operation.set_part(attribute, self._tensor(name, convolution.type, operand))
        for attribute, factor in ((what.first, 1.0), (what.first + 1, 0.0)):
            operation.set(attribute, _DOUBLE, ctypes.c_double(factor))
        graph = self._new_descriptor(_GRAPH)
        graph.set_part(_GRAPH_OPERATIONS, operation.finish())
        return graph.finish()

    def _tensor(self, name: int, type: str, operand: Operand) -> _Descriptor:
        tensor = self._new_descriptor(_TENSOR)
        tensor.set_integers(_TENSOR_ID, [name])
        tensor.set_choice(_TENSOR_TYPE, _DATA_TYPE, TYPES[type])
        tensor.set_integers(_TENSOR_SHAPE, operand.shape)
        tensor.set_integers(_TENSOR_STRIDES, operand.strides)
        # PyTorch's tensors begin at multiples of at least 16 bytes.
        tensor.set_integers(_TENSOR_ALIGNMENT, [16])
        return tensor.finish()

    def _convolution(self, convolution: Convolution) -> _Descriptor:
        descriptor = self._new_descriptor(_CONVOLUTION)
        descriptor.set_integers(_DIMENSIONS, [len(convolution.strides)])
        sums = convolution.type if convolution.type == "float64" else "float32"
        descriptor.set_choice(_SUM_TYPE, _DATA_TYPE, TYPES[sums])
        descriptor.set_choice(_MODE, _CONVOLUTION_MODE, 1)  # A cross-correlation.
        descriptor.set_integers(_PADDING, convolution.padding)
        descriptor.set_integers(_PADDING_AFTER, convolution.padding)
        descriptor.set_integers(_STRIDES, convolution.strides)
        descriptor.set_integers(_DILATIONS, convolution.dilations)
        return descriptor.finish()

    def _configurations(self, graph: _Descriptor, mode: int) -> list[_Descriptor]:
        heuristics = self._new_descriptor(_HEURISTICS)
        heuristics.set_part(_HEURISTICS_GRAPH, graph)
        heuristics.set_choice(_HEURISTICS_MODE, _HEURISTIC_MODE, mode)
        heuristics.set_part(_HEURISTICS_DEVICE, self._device)
        return heuristics.finish().parts(_HEURISTICS_RESULTS, _CONFIGURATION)

    def _workspaces_of(self, configurations: list[_Descriptor]) -> Iterator[int]:
        """Yields the workspaces of the configurations that cuDNN accepts."""
        for configuration in configurations:
            with suppress(_RefusedError):
                plan = self._new_descriptor(_PLAN)
                plan.set_part(_PLAN_CONFIGURATION, configuration)
                plan.set_part(_PLAN_DEVICE, self._device)
                yield plan.finish().integer(_PLAN_WORKSPACE)

    def _new_descriptor(self, kind: int) -> _Descriptor:
        return _Descriptor(self._library, kind)


@functools.cache
def advisor(device: str) -> Advisor | str:
    """Returns cuDNN's recommendations for a device of ``ckplan devices``, or why there are none."""
    described = device_named(device)
    if described.cuda is None:
        return f"not known: {device} is not a GPU with known properties for cuDNN"
    for path in _paths():
        with suppress(OSError):
            library = Library(path)
            if library.version < _FIRST_VERSION:
                return f"not known: {library.name} cannot plan for an absent GPU; 9.8 can"
            is_new = described.cuda["compute_capability"] >= 100
            if is_new and library.version < _FIRST_FOR_BLACKWELL:
                return f"not known: {library.name} does not support a {device}; 9.19 does"
            try:
                return Advisor(library, _describe_device(library, described))
            except _RefusedError:
                return f"not known: {library.name} does not know a {device}"
    return "not known without cuDNN: pip install nvidia-cudnn-cu13"


def _paths() -> Iterator[str]:
    """Yields the paths at which cuDNN may be: in a wheel, or on the system's library path."""
    with suppress(ImportError):
        found = importlib.util.find_spec("nvidia.cudnn")
        for folder in (found.submodule_search_locations or []) if found is not None else []:
            yield str(Path(folder) / "lib" / "libcudnn.so.9")
    yield "libcudnn.so.9"


def _describe_device(library: Library, device: Device) -> _Descriptor:
    """Returns the descriptor of a device. Raises _RefusedError."""
    text = json.dumps(_properties(device)).encode()
    descriptor = _Descriptor(library, _DEVICE)
    characters = ctypes.create_string_buffer(text, len(text))
    descriptor.set(_DEVICE_PROPERTIES, _CHARACTERS, characters, len(text))
    return descriptor.finish()


def _properties(device: Device) -> dict[str, Any]:
    """Returns the properties under cuDNN's names; cuDNN requires all of them.

    The constant ones are the same for all GPUs that the program describes, or do not matter
    (lib/executor/cuda/gpu/cuda_libraries.cc).
    """
    cuda: Mapping[str, int] = device.cuda or {}
    return {
        "deviceName": device.description.partition(",")[0],
        "deviceVer": 10 * cuda["compute_capability"],
        "multiProcessorCount": cuda["multiprocessors"],
        "maxSharedMemoryPerBlockOptin": cuda["shared_memory_per_block_bytes"],
        "l2CacheSize": cuda["l2_cache_bytes"],
        "smClockRateKHz": cuda["clock_khz"],
        "memClockRateKHz": cuda["memory_clock_khz"],
        "totalGlobalMem": device.memory_bytes,
        "maxGridSize": [2147483647, 65535, 65535],
        "maxBlockSize": [1024, 1024, 64],
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerSM": 2048,
        "maxCtasPerSM": 32,
        "regsPerBlock": 65536,
        "maxRegistersPerSM": 65536,
        "warpSize": 32,
        "maxSharedMemoryPerBlock": 49152,
        "reservedSharedMemoryPerBlock": 1024,
        "supportCoopLaunch": 1,
        "isTccDriver": 0,
        "driverVer": 13000,
        "pciDeviceId": 0,
        "cudaDeviceId": 0,
    }
