// CKPLAN_DEVICE marks functions that kernels call: nvcc compiles them for the host and for the GPU,
// and for other compilers they are ordinary functions.
#pragma once

#ifdef __CUDACC__
#define CKPLAN_DEVICE __host__ __device__
#else
#define CKPLAN_DEVICE
#endif
