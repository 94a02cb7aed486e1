#include "lib/executor/cuda/registry.h"

#include <vector>

namespace ckplan::cuda {

namespace {

#define CKPLAN_FAMILY(Name) Name##Ops,
constexpr OpTable<OpRow>::Family kFamilies[] = {CKPLAN_CUDA_FAMILIES(CKPLAN_FAMILY)};
#undef CKPLAN_FAMILY

std::span<const OpRow> HostOps() {
  static const std::vector<OpRow> rows = [] {
    const OpTable<OpRow> kernels(kFamilies);
    std::vector<OpRow> others;
    for (const FamilyRow& row : AllFamilyRows()) {
      if (kernels.Find(row.type) == nullptr) {
        others.push_back({row.type, nullptr, "computed by the host"});
      }
    }
    return others;
  }();
  return rows;
}

}  // namespace

const OpTable<OpRow>& Table() {
  static const OpTable<OpRow> table = [] {
    std::vector<OpTable<OpRow>::Family> families(std::begin(kFamilies), std::end(kFamilies));
    families.push_back(HostOps);
    return OpTable<OpRow>(families);
  }();
  return table;
}

Error Unsupported(const OpSpec& spec, std::string_view what) {
  return UnsupportedOp(spec, "cuda", what);
}

}  // namespace ckplan::cuda
