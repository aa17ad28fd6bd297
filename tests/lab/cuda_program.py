"""A program that uses the first GPU: `python tests/lab/cuda_program.py [--faulty]`.

It stores a number in the GPU's memory by a kernel and reads it back. A faulty one
stores it where nothing is, which the driver reports as an XID. It needs the driver's
libcuda and nothing else, not even this repository.
"""

from __future__ import annotations

import ctypes
import sys

KERNEL = b"""
.version 7.0
.target sm_50
.address_size 64
.visible .entry store(.param .u64 place, .param .u32 number) {
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [place];
    ld.param.u32 %r1, [number];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""
NUMBER = 20_251
NOWHERE = 0x10


def main(*, is_faulty: bool) -> None:
    """Run the kernel.

    Raises:
        SystemExit: CUDA refused a call; it names the call and the error's number.
    """
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        error = getattr(cuda, name)(*arguments)
        if error:
            sys.exit(f"{name}: error {error}")

    # First a context on the GPU with the kernel in it ...
    device, context = ctypes.c_int(), ctypes.c_void_p()
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), KERNEL)
    call("cuModuleGetFunction", ctypes.byref(kernel), module, b"store")
    # ... then one thread that stores the number, and what it stored.
    place, number = ctypes.c_uint64(), ctypes.c_uint32(NUMBER)
    call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(4))
    where = ctypes.c_uint64(NOWHERE if is_faulty else place.value)
    arguments = (ctypes.c_void_p * 2)(
        ctypes.cast(ctypes.byref(where), ctypes.c_void_p),
        ctypes.cast(ctypes.byref(number), ctypes.c_void_p),
    )
    call("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
    call("cuCtxSynchronize")
    found = ctypes.c_uint32()
    call("cuMemcpyDtoH_v2", ctypes.byref(found), place, ctypes.c_size_t(4))
    sys.stdout.write(f"{found.value}\n")


if __name__ == "__main__":
    main(is_faulty="--faulty" in sys.argv[1:])
