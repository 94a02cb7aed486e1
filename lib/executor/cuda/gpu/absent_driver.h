// A driver for machines without one. cuDNN compiles its engines for attention when it makes a plan,
// and loads the code with the CUDA driver, which it looks for by name. For a GPU that is only
// described the code is never run, so a library in the place of the driver is enough, which says
// that there is no GPU and takes code without a look (absent_driver_library.cc).
#pragma once

namespace ckplan::cuda {

// Loads that library from where the program lies, so that cuDNN finds it under the driver's name.
// Must be called before cuDNN looks for a driver. Where the library is missing nothing happens:
// cuDNN then refuses plans of attention with its own reason.
void LoadAbsentDriver();

}  // namespace ckplan::cuda
