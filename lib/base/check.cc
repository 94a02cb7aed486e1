#include "lib/base/check.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lib/base/text.h"

namespace ckplan {

namespace {

constexpr int kInternalFaultExitCode = 70;

}  // namespace

void FailCheck(std::string_view file, int line, std::string_view condition, std::string_view why) {
  const std::string shown = PrintableMessage(why);
  std::fprintf(
      stderr,
      "ckplan: internal fault: expected that %.*s (%.*s, line %d of %.*s); please report it "
      "with the command line and the model\n",
      static_cast<int>(shown.size()), shown.data(), static_cast<int>(condition.size()),
      condition.data(), line, static_cast<int>(file.size()), file.data());
  std::fflush(nullptr);
  std::_Exit(kInternalFaultExitCode);
}

}  // namespace ckplan
