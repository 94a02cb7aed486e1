#include "lib/executor/cuda/registry.h"

namespace ckplan::cuda {

const OpTable<OpRow>& Table() {
  static constexpr OpTable<OpRow>::Family kFamilies[] = {
#define CKPLAN_FAMILY(Name) Name##Ops,
#include "lib/problem/ops/families.def"
#undef CKPLAN_FAMILY
  };
  static const OpTable<OpRow> table(kFamilies);
  return table;
}

Error Unsupported(const OpSpec& spec, std::string_view what) {
  return UnsupportedOp(spec, "cuda", what);
}

}  // namespace ckplan::cuda
