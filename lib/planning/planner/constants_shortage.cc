#include "lib/planning/planner/constants_shortage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/text.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/planning/plan/outside.h"

namespace ckplan {
namespace {

constexpr int64_t kMaxDevices = 1024;

Bytes StateOf(const Source& source) {
  return OptimizerState(source.request, source.step().optimized());
}

Bytes TotalOf(const Source& source) {
  return TotalConstants(source.step().constants(), StateOf(source));
}

class RemedySearch {
 public:
  RemedySearch(const ReadSource& read, const Source& source, Bytes memory)
      : read_(read), source_(source), memory_(memory), needed_(TotalOf(source)) {}

  Result<std::vector<LessConstants>> Run() && {
    CKPLAN_RETURN_IF_ERROR(AddSharding());
    AddOptimizer();
    CKPLAN_RETURN_IF_ERROR(AddFreezing());
    return std::move(remedies_);
  }

 private:
  // Arriving gradients cannot be divided.
  Result<Done> AddSharding() {
    PlanRequest request = source_.request;
    if (request.gradients == ParameterGradients::kArriving) return Done{};
    int64_t devices = kMinShardingDevices;
    if (request.sharding) devices = std::max(devices, 2 * request.sharding->devices);
    for (; devices <= kMaxDevices; devices *= 2) {
      request.sharding = Sharding{ShardingSystem::kFsdp, devices};
      CKPLAN_ASSIGN_OR_RETURN(const Bytes constants, ConstantsWith(request));
      if (constants > memory_) continue;
      Add("sharding", TextOf(*request.sharding), constants);
      break;
    }
    return Done{};
  }

  void AddOptimizer() {
    for (const Optimizer optimizer : {Optimizer::kAdam8Bit, Optimizer::kSgd}) {
      PlanRequest request = source_.request;
      request.optimizer = optimizer;
      const bool is_adam = source_.request.optimizer == Optimizer::kAdam ||
                           source_.request.optimizer == Optimizer::kAdamW;
      if (optimizer == Optimizer::kAdam8Bit && !is_adam) continue;
      const Bytes state = OptimizerState(request, source_.step().optimized());
      Add("optimizer", std::string(NameOf(optimizer)), needed_ - StateOf(source_) + state);
    }
  }

  // Adds a lower bound for freezing: the size when nothing is trained.
  Result<Done> AddFreezing() {
    PlanRequest request = source_.request;
    request.freeze = {"*"};
    const Result<Bytes> constants = ConstantsWith(request);
    // Some models have nothing to freeze.
    if (!constants.ok() && constants.error().code == ErrorCode::kUsage) return Done{};
    if (!constants.ok()) return constants.error();
    Add("freeze", "NAME", *constants);
    return Done{};
  }

  Result<Bytes> ConstantsWith(const PlanRequest& request) const {
    CKPLAN_ASSIGN_OR_RETURN(const Source source, read_(request));
    return TotalOf(source);
  }

  void Add(std::string field, std::string value, Bytes constants) {
    if (constants >= needed_) return;
    remedies_.push_back({{std::move(field), std::move(value)}, constants});
  }

  const ReadSource& read_;
  const Source& source_;
  const Bytes memory_;
  const Bytes needed_;
  std::vector<LessConstants> remedies_;
};

}  // namespace

std::string PartsText(const ConstantMemory& constants, Bytes optimizer_state,
                      const PlanRequest& request) {
  return fmt::format("parameters {}, gradients {}, {} state {}{}, inputs {}{}",
                     HumanBytes(constants.parameters), HumanBytes(constants.parameter_gradients),
                     NameOf(request.optimizer), HumanBytes(optimizer_state),
                     request.has_master_weights ? " with master weights" : "",
                     HumanBytes(constants.inputs),
                     constants.unsharded == Bytes(0)
                         ? ""
                         : fmt::format(", gather buffers {}", HumanBytes(constants.unsharded)));
}

std::optional<std::string> ConstantsNote(const ConstantMemory& constants, Bytes optimizer_state,
                                         const PlanRequest& request) {
  std::optional<Bytes> budget = request.total_budget.in_bytes();
  if (request.memory.is_given()) budget = request.memory.bytes - OutsideInMemory(request);
  const Bytes needed = TotalConstants(constants, optimizer_state);
  if (!budget || needed < *budget) return std::nullopt;
  return fmt::format("every plan needs {} ({} bytes) for the constants alone: {}",
                     HumanBytes(needed), needed.count(),
                     PartsText(constants, optimizer_state, request));
}

Result<std::optional<ConstantsShortage>> FindConstantsShortage(const ReadSource& read,
                                                               const Source& source, Bytes memory) {
  if (TotalOf(source) < memory) return std::optional<ConstantsShortage>();
  ConstantsShortage shortage{source.step().constants(), StateOf(source), {}};
  CKPLAN_ASSIGN_OR_RETURN(shortage.remedies, RemedySearch(read, source, memory).Run());
  return std::optional(std::move(shortage));
}

}  // namespace ckplan
