// A stand-in for the CUDA driver (cuda_libraries.cc), with the functions that cuDNN 9.19 and 9.26
// look up. Each returns CUDA's error for a missing driver, except those that load a plan's code.

namespace {

constexpr int kSuccess = 0;
constexpr int kStubLibrary = 34;  // CUDA_ERROR_STUB_LIBRARY

// Stands for all code and all kernels; never read.
char loaded = 0;

}  // namespace

extern "C" {

int cuLibraryLoadData(void** library) {
  *library = &loaded;
  return kSuccess;
}
int cuLibraryGetKernel(void** kernel) {
  *kernel = &loaded;
  return kSuccess;
}
int cuLibraryUnload(void*) { return kSuccess; }

int cuGetErrorName(int, const char** name) {
  *name = "CUDA_ERROR_STUB_LIBRARY";
  return kSuccess;
}
int cuGetErrorString(int, const char** text) {
  *text = "there is no driver, only a library in its place";
  return kSuccess;
}

#define CKPLAN_ABSENT(name) \
  int name() { return kStubLibrary; }

CKPLAN_ABSENT(cuCtxGetCurrent)
CKPLAN_ABSENT(cuCtxGetDevice)
CKPLAN_ABSENT(cuCtxGetLimit)
CKPLAN_ABSENT(cuCtxPopCurrent)
CKPLAN_ABSENT(cuCtxPushCurrent)
CKPLAN_ABSENT(cuDeviceGet)
CKPLAN_ABSENT(cuDeviceGetAttribute)
CKPLAN_ABSENT(cuDeviceGetCount)
CKPLAN_ABSENT(cuDevicePrimaryCtxRelease)
CKPLAN_ABSENT(cuDevicePrimaryCtxReset)
CKPLAN_ABSENT(cuDevicePrimaryCtxRetain)
CKPLAN_ABSENT(cuDriverGetVersion)
CKPLAN_ABSENT(cuFuncGetAttribute)
CKPLAN_ABSENT(cuFuncSetAttribute)
CKPLAN_ABSENT(cuInit)
CKPLAN_ABSENT(cuKernelGetAttribute)
CKPLAN_ABSENT(cuKernelGetFunction)
CKPLAN_ABSENT(cuKernelSetAttribute)
CKPLAN_ABSENT(cuLaunchCooperativeKernel)
CKPLAN_ABSENT(cuLaunchKernel)
CKPLAN_ABSENT(cuLaunchKernelEx)
CKPLAN_ABSENT(cuLibraryLoadFromFile)
CKPLAN_ABSENT(cuLinkAddData)
CKPLAN_ABSENT(cuLinkAddData_v2)
CKPLAN_ABSENT(cuLinkAddFile_v2)
CKPLAN_ABSENT(cuLinkComplete)
CKPLAN_ABSENT(cuLinkCreate)
CKPLAN_ABSENT(cuLinkCreate_v2)
CKPLAN_ABSENT(cuLinkDestroy)
CKPLAN_ABSENT(cuMemcpyDtoH_v2)
CKPLAN_ABSENT(cuModuleGetFunction)
CKPLAN_ABSENT(cuModuleGetGlobal_v2)
CKPLAN_ABSENT(cuModuleLoadData)
CKPLAN_ABSENT(cuModuleLoadDataEx)
CKPLAN_ABSENT(cuModuleLoadFatBinary)
CKPLAN_ABSENT(cuModuleUnload)
CKPLAN_ABSENT(cuOccupancyMaxActiveBlocksPerMultiprocessor)
CKPLAN_ABSENT(cuOccupancyMaxPotentialClusterSize)
CKPLAN_ABSENT(cuStreamGetCtx)
CKPLAN_ABSENT(cuStreamGetGreenCtx)
CKPLAN_ABSENT(cuStreamSynchronize)
CKPLAN_ABSENT(cuTensorMapEncodeTiled)

}  // extern "C"
