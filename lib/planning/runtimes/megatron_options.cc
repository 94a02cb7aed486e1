#include "lib/planning/runtimes/megatron_options.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/text.h"

namespace ckplan {
namespace {

using Option = RegionClass::Option;

// In the order of Megatron's documentation.
constexpr std::array<std::string_view, 4> kModules = {"core_attn", "layernorm", "mlp", "moe"};

bool Contains(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

// Returns the last part of the path in lower case.
std::string NameOf(const ModuleOps& module) {
  return LowerCase(module.path.substr(module.path.rfind('.') + 1));
}

bool IsNorm(const ModuleOps& part) {
  const std::string name = NameOf(part);
  return Contains(name, {"norm"}) || name.starts_with("ln");
}
bool IsAttention(const ModuleOps& part) { return Contains(NameOf(part), {"att"}) && !IsNorm(part); }
bool IsExperts(const ModuleOps& part) { return Contains(NameOf(part), {"moe", "expert"}); }
bool IsMlp(const ModuleOps& part) {
  return Contains(NameOf(part), {"mlp", "feed_forward", "ffn"}) && !IsNorm(part);
}

class Layer {
 public:
  Layer(const Block& block, RegionCollector& regions)
      : block_(block), regions_(regions), graph_(regions.graph()) {}

  // Returns the regions of the module; nullopt if the layer lacks it or has one that can't be
  // checkpointed.
  std::optional<std::vector<int32_t>> RegionsOf(std::string_view module) {
    std::vector<int32_t> found;
    for (const ModuleOps& part : block_.parts) {
      if (module == "core_attn" && IsAttention(part)) {
        const ModuleOps core = CoreAttention(part);
        if (!core.forward.empty()) found.push_back(regions_.Add({&core}, Rerun::kWhole));
      } else if (module == "layernorm" && IsNorm(part)) {
        AddNorm(part, found);
      } else if ((module == "mlp" && IsMlp(part)) || (module == "moe" && IsExperts(part))) {
        found.push_back(regions_.Add({&part}, Rerun::kWhole));
      }
    }
    const bool is_possible =
        !found.empty() && std::none_of(found.begin(), found.end(), [](int32_t r) { return r < 0; });
    return is_possible ? std::optional(std::move(found)) : std::nullopt;
  }

 private:
  static bool IsAttentionType(const std::string& type) {
    return Contains(type, {"scaled_dot_product", "_attention", "Attention"});
  }

  // Returns the operations of a module outside its submodules.
  ModuleOps DirectOperations(const ModuleOps& part, const std::string& path) const {
    ModuleOps direct{path, {}, {}};
    const auto is_own = [&](OpId id) { return graph_.op(id).module == path; };
    std::copy_if(part.forward.begin(), part.forward.end(), std::back_inserter(direct.forward),
                 is_own);
    std::copy_if(part.backward.begin(), part.backward.end(), std::back_inserter(direct.backward),
                 is_own);
    return direct;
  }

  // Returns the operations from the attention's first to its last product, which belong to one
  // module: a single operation, or two products.
  ModuleOps CoreAttention(const ModuleOps& attention) const {
    const auto is_product = [&](OpId id) {
      const std::string& type = graph_.op(id).op;
      return IsAttentionType(type) || Contains(type, {"bmm", "matmul", "MatMul"});
    };
    for (const OpId id : attention.forward) {
      if (!is_product(id)) continue;
      ModuleOps core = DirectOperations(attention, graph_.op(id).module);
      const auto end = std::find_if(core.forward.rbegin(), core.forward.rend(), is_product).base();
      if (!IsAttentionType(graph_.op(id).op) && *(end - 1) == id) continue;
      core.forward.erase(end, core.forward.end());
      core.forward.erase(core.forward.begin(),
                         std::find(core.forward.begin(), core.forward.end(), id));
      return core;
    }
    return {};
  }

  // Norms whose results are not read first by another part, such as those after a sum, can't
  // discard their results.
  void AddNorm(const ModuleOps& norm, std::vector<int32_t>& found) {
    const ModuleOps* reader = ReaderOf(norm);
    if (reader == nullptr || reader->backward.empty()) return;
    found.push_back(regions_.Add({&norm}, Rerun::kDiscarded, reader->backward));
  }

  // Returns the only part that reads the module's results in the forward pass, or null.
  const ModuleOps* ReaderOf(const ModuleOps& module) const {
    const ModuleOps* found = nullptr;
    for (const OpId id : module.forward) {
      for (const ValueId write : graph_.op(id).writes) {
        for (const OpId reader : graph_.value(write).readers) {
          if (graph_.op(reader).phase != Phase::kForward || IsIn(module, reader)) continue;
          const ModuleOps* part = PartOf(reader);
          if (part == nullptr || (found != nullptr && found != part)) return nullptr;
          found = part;
        }
      }
    }
    return found;
  }

  static bool IsIn(const ModuleOps& module, OpId id) {
    return std::binary_search(module.forward.begin(), module.forward.end(), id);
  }

  const ModuleOps* PartOf(OpId id) const {
    for (const ModuleOps& part : block_.parts) {
      if (IsIn(part, id)) return &part;
    }
    return nullptr;
  }

  const Block& block_;
  RegionCollector& regions_;
  const JointGraph& graph_;
};

struct RecomputableModule {
  std::string name;
  std::vector<int32_t> regions;  // All layers have these.
};

std::vector<RecomputableModule> ModulesOf(const std::vector<const Block*>& layers,
                                          RegionCollector& regions) {
  std::vector<RecomputableModule> modules;
  for (const std::string_view name : kModules) {
    RecomputableModule module{std::string(name), {}};
    bool has_all = true;
    for (const Block* block : layers) {
      const auto found = Layer(*block, regions).RegionsOf(name);
      if (!found) {
        has_all = false;
        break;
      }
      module.regions.insert(module.regions.end(), found->begin(), found->end());
    }
    if (has_all) modules.push_back(std::move(module));
  }
  return modules;
}

// Adds an option for each set of modules.
void AddSelective(const std::vector<const Block*>& layers, RegionCollector& regions,
                  RegionClass::Unit& unit) {
  const std::vector<RecomputableModule> modules = ModulesOf(layers, regions);
  for (size_t set = 1; set < size_t{1} << modules.size(); ++set) {
    Option option;
    option.setting.method = "selective";
    for (size_t i = 0; i < modules.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      option.setting.modules.push_back(modules[i].name);
      for (const int32_t region : modules[i].regions) option.regions.push_back({region, {}});
    }
    unit.options.push_back(std::move(option));
  }
}

}  // namespace

RegionClass::Unit MegatronUnit(const std::vector<const Block*>& layers, RegionCollector& regions) {
  RegionClass::Unit unit{{Option{}}, 0};
  for (size_t n = 1; n <= layers.size(); ++n) {
    Option uniform = regions.Chunks(layers, n);
    if (uniform.regions.empty()) continue;
    if (n == 1) {
      for (size_t first = 1; first <= layers.size(); ++first) {
        Option block;
        block.setting = {"block", static_cast<int64_t>(first), {}};
        block.regions.assign(uniform.regions.begin(),
                             uniform.regions.begin() + static_cast<std::ptrdiff_t>(first));
        unit.options.push_back(std::move(block));
      }
    }
    uniform.setting.method = "uniform";
    unit.options.push_back(std::move(uniform));
  }
  AddSelective(layers, regions, unit);
  return unit;
}

}  // namespace ckplan
