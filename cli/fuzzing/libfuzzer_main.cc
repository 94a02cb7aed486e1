// The entry point for clang's libFuzzer, built once for each CKPLAN_FUZZ_TARGET.
#include <cstdio>
#include <cstdlib>

#include "cli/fuzzing/fuzz_targets.h"
#include "lib/base/check.h"

#ifdef CKPLAN_FUZZ_MUTATOR
#include "cli/fuzzing/kernel_case.h"
#endif

namespace ckplan {

// Replaces the function in lib/base, which exits with a code that libFuzzer wouldn't notice. A
// signal makes libFuzzer save the input.
void FailCheck(std::string_view file, int line, std::string_view condition, std::string_view why) {
  std::fprintf(stderr, "%.*s:%d: %.*s: %.*s\n", static_cast<int>(file.size()), file.data(), line,
               static_cast<int>(condition.size()), condition.data(), static_cast<int>(why.size()),
               why.data());
  std::abort();
}

}  // namespace ckplan

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ckplan::CKPLAN_FUZZ_TARGET({data, size});
  return 0;
}

#ifdef CKPLAN_FUZZ_MUTATOR
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  const std::string text =
      ckplan::MutateKernelCase({reinterpret_cast<const char*>(data), size}, seed);
  if (text.size() > max_size) return size;
  std::copy(text.begin(), text.end(), data);
  return text.size();
}
#endif
