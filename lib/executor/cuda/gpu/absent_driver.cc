#include "lib/executor/cuda/gpu/absent_driver.h"

#include <dlfcn.h>

namespace ckplan::cuda {

void LoadAbsentDriver() {
  // The loader puts the folder of the program in the place of $ORIGIN.
  dlopen("$ORIGIN/libckplan_absent_driver.so", RTLD_NOW | RTLD_GLOBAL);
}

}  // namespace ckplan::cuda
