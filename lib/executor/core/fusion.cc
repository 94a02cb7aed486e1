#include "lib/executor/core/fusion.h"

#include <algorithm>

#include "lib/executor/core/step_operators.h"

namespace ckplan {

namespace {

bool ManagesMemory(const Action& action) {
  return action.kind == ActionKind::kAllocate || action.kind == ActionKind::kRelease;
}

class FusionFinder {
 public:
  FusionFinder(const Program& program, const StepGraph& step, const FusibleLength& fusible)
      : program_(program), step_(step), fusible_(fusible) {}

  std::vector<Fusion> Find() && {
    std::vector<Fusion> found;
    for (size_t at = 0; at < program_.actions.size(); ++at) {
      if (program_.actions[at].kind != ActionKind::kForward) continue;
      Fusion fusion = LongestFrom(at);
      if (fusion.actions.empty()) continue;
      at = fusion.actions.back();
      found.push_back(std::move(fusion));
    }
    return found;
  }

 private:
  const Call& CallOf(size_t action) const {
    return program_.calls[static_cast<size_t>(program_.actions[action].call)];
  }
  const StepNode& NodeOf(size_t action) const { return step_.nodes[CallOf(action).node]; }

  // Returns the next action that doesn't just manage memory.
  size_t NextComputation(size_t action) const {
    ++action;
    while (action < program_.actions.size() && ManagesMemory(program_.actions[action])) ++action;
    return action;
  }

  // Returns the input position at which the operator reads the chain's last result, if it reads no
  // other result of the chain.
  std::optional<size_t> CarriedInput(const Fusion& chain, size_t action) const {
    std::optional<size_t> carried;
    const auto& inputs = NodeOf(action).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].tensor.is_none()) continue;
      for (const size_t before : chain.actions) {
        const StepNode& producer = NodeOf(before);
        if (std::find(producer.outputs.begin(), producer.outputs.end(), inputs[i].tensor) ==
            producer.outputs.end()) {
          continue;
        }
        const bool is_last =
            before == chain.actions.back() && producer.outputs[0] == inputs[i].tensor;
        if (!is_last || carried) return std::nullopt;
        carried = i;
      }
    }
    return carried;
  }

  // Collects operators that each read the previous one's result.
  Fusion ChainFrom(size_t action) const {
    Fusion chain;
    chain.actions.push_back(action);
    chain.ops.push_back({&NodeOf(action).spec, nullptr, 0});
    for (;;) {
      const size_t next = NextComputation(chain.actions.back());
      if (next >= program_.actions.size()) return chain;
      if (program_.actions[next].kind != ActionKind::kForward) return chain;
      const auto carried = CarriedInput(chain, next);
      if (!carried) return chain;
      chain.actions.push_back(next);
      chain.ops.push_back({&NodeOf(next).spec, nullptr, *carried});
    }
  }

  Fusion LongestFrom(size_t action) const {
    Fusion chain = ChainFrom(action);
    size_t length = chain.ops.size() < 2 ? 0 : fusible_(chain.ops);
    for (; length >= 2; --length) {
      chain.actions.resize(length);
      chain.ops.resize(length);
      if (fusible_(chain.ops) == length && MakeCalls(chain)) return chain;
    }
    return {};
  }

  // True if the buffer is released between the two actions.
  bool IsReleased(int32_t buffer, size_t first, size_t end) const {
    for (size_t i = first; i < end; ++i) {
      const Action& action = program_.actions[i];
      if (action.kind == ActionKind::kRelease && action.buffer == buffer) return true;
    }
    return false;
  }

  bool IsNeededLater(const Fusion& chain, size_t link) const {
    const int32_t own = CallOf(chain.actions[link]).outputs[0];
    if (own == kNoBuffer) return false;
    for (size_t later = link + 1; later < chain.actions.size(); ++later) {
      if (CallOf(chain.actions[later]).outputs[0] == own) return false;
    }
    return link + 1 == chain.actions.size() ||
           !IsReleased(own, chain.actions[link], NextComputation(chain.actions.back()));
  }

  // Builds the calls. Returns false if something that they read or write is released too early.
  bool MakeCalls(Fusion& chain) const {
    chain.calls.clear();
    const size_t first = chain.actions.front();
    const size_t last = chain.actions.back();
    for (size_t link = 0; link < chain.actions.size(); ++link) {
      Call call = CallOf(chain.actions[link]);
      call.workspace = kNoBuffer;
      if (link > 0) call.inputs[chain.ops[link].carried] = kNoBuffer;
      if (!IsNeededLater(chain, link)) call.outputs[0] = kNoBuffer;
      std::vector<int32_t> used = call.inputs;
      used.insert(used.end(), call.outputs.begin(), call.outputs.end());
      used.push_back(call.statistic);
      for (const int32_t buffer : used) {
        if (buffer != kNoBuffer && IsReleased(buffer, first, last)) return false;
      }
      chain.calls.push_back(std::move(call));
    }
    return true;
  }

  const Program& program_;
  const StepGraph& step_;
  const FusibleLength& fusible_;
};

}  // namespace

std::vector<Fusion> FindFusions(const Program& program, const StepGraph& step,
                                const FusibleLength& fusible) {
  return FusionFinder(program, step, fusible).Find();
}

FusedProgram::FusedProgram(const Program& program, const StepGraph& step,
                           const StepOperators& operators, Backend& backend) {
  // A backend joins only kernels.
  const auto fusible = [&](std::span<const ChainedOp> ops) -> size_t {
    const auto end = std::find_if(ops.begin(), ops.end(), [&step](const ChainedOp& chained) {
      return NeedsWrapper(*chained.spec, step.autograd);
    });
    const auto kernels = ops.first(static_cast<size_t>(end - ops.begin()));
    return kernels.size() < 2 ? 0 : backend.FusibleLength(kernels);
  };
  for (Fusion& fusion : FindFusions(program, step, fusible)) {
    for (size_t i = 0; i < fusion.ops.size(); ++i) {
      fusion.ops[i].op = operators.nodes[fusion.calls[i].node].get();
    }
    group_of_action_.resize(program.actions.size(), -1);
    for (const size_t action : fusion.actions) {
      group_of_action_[action] = static_cast<int32_t>(groups_.size());
    }
    std::unique_ptr<FusedForward> run = backend.Fuse(fusion.ops);
    groups_.push_back({std::move(fusion), std::move(run)});
  }
}

const FusedProgram::Group* FusedProgram::GroupOf(size_t action) const {
  if (group_of_action_.empty() || group_of_action_[action] < 0) return nullptr;
  return &groups_[static_cast<size_t>(group_of_action_[action])];
}

}  // namespace ckplan
