// What validation is for: a plan with one fault in it must fail, at the step and the tensor where
// the fault shows.
#include <algorithm>

#include "lib/exec/test_backend.h"
#include "lib/exec/testing.h"

namespace ckplan {
namespace {

class FaultyPlan {
 public:
  explicit FaultyPlan(ActivationType type)
      : backend_(MakeTestBackend()), small_(*backend_, SmallNet(), 2, type) {
    Rng rng(3);
    plan_ = small_.Random(rng, 50);
    keep_all_ = small_.KeepAll();
  }

  PlacedProgram& plan() { return plan_; }
  std::vector<Action>& actions() { return plan_.program.actions; }
  std::string Name(int32_t buffer) const {
    return BufferText(small_.step(), plan_.program, buffer);
  }
  std::string Step(const Action& action) const {
    return StepText(small_.step(), plan_.program, action);
  }

  // The only failure, which must be the plan's and name all of `parts`.
  void CheckFails(const std::vector<std::string>& parts) {
    const ValidationReport report = small_.Validate(keep_all_, plan_);
    REQUIRE(report.failures.size() == 1);
    const std::string& failure = report.failures.front();
    CAPTURE(failure);
    CHECK(failure.find("the plan: ") == 0);
    for (const std::string& part : parts) {
      CAPTURE(part);
      CHECK(failure.find(part) != std::string::npos);
    }
  }
  bool Passes() { return small_.Validate(keep_all_, plan_).failures.empty(); }

  bool Reads(const Action& action, int32_t buffer) const {
    if (action.kind != ActionKind::kForward && action.kind != ActionKind::kBackward) return false;
    const Call& call = plan_.program.calls[static_cast<size_t>(action.call)];
    const auto has = [buffer](const std::vector<int32_t>& list) {
      return std::find(list.begin(), list.end(), buffer) != list.end();
    };
    const bool reads_outputs = action.kind == ActionKind::kBackward && has(call.outputs);
    return has(call.inputs) || has(call.output_gradients) || reads_outputs;
  }

 private:
  std::unique_ptr<Backend> backend_;
  SmallStep small_;
  PlacedProgram plan_;
  PlacedProgram keep_all_;
};

bool IsTensor(const FaultyPlan& faulty, const Program& program, int32_t buffer) {
  return faulty.Name(buffer).front() == '"' &&
         program.buffers[static_cast<size_t>(buffer)].bytes > Bytes(0);
}

void PassesWithout(ActivationType type) { CHECK(FaultyPlan(type).Passes()); }

void FindsMissingFree(ActivationType type) {
  FaultyPlan faulty(type);
  const auto free =
      std::find_if(faulty.actions().begin(), faulty.actions().end(), [&](const Action& action) {
        return action.kind == ActionKind::kRelease &&
               IsTensor(faulty, faulty.plan().program, action.buffer);
      });
  REQUIRE(free != faulty.actions().end());
  const std::string tensor = faulty.Name(free->buffer);
  faulty.actions().erase(free);
  faulty.CheckFails({tensor, "is still in memory after step"});
}

void FindsEveryEarlyFree(ActivationType type) {
  const std::vector<Action> whole = FaultyPlan(type).actions();
  int tried = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    if (whole[at].kind != ActionKind::kRelease) continue;
    FaultyPlan faulty(type);
    const int32_t buffer = whole[at].buffer;
    size_t reader = at;
    while (reader > 0 && !faulty.Reads(whole[reader], buffer)) --reader;
    if (!faulty.Reads(whole[reader], buffer)) continue;  // Written, but never read.
    CAPTURE(faulty.Name(buffer));
    auto& actions = faulty.actions();
    std::rotate(actions.begin() + static_cast<std::ptrdiff_t>(reader),
                actions.begin() + static_cast<std::ptrdiff_t>(at),
                actions.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    faulty.CheckFails({faulty.Name(buffer), faulty.Step(whole[reader]), "not in memory"});
    ++tried;
  }
  CHECK(tried > 20);
}

void FindsSwappedOffsets(ActivationType type) {
  FaultyPlan whole(type);
  const auto& buffers = whole.plan().program.buffers;
  int failed = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (size_t k = i + 1; k < buffers.size(); ++k) {
      // The larger buffer, in the smaller one's place, must overlap others.
      const auto a = static_cast<int32_t>(i);
      const auto b = static_cast<int32_t>(k);
      if (k % 7 != i % 7 || !IsTensor(whole, whole.plan().program, a) ||
          !IsTensor(whole, whole.plan().program, b) || buffers[i].bytes == buffers[k].bytes) {
        continue;
      }
      FaultyPlan faulty(type);
      std::swap(faulty.plan().offsets[i], faulty.plan().offsets[k]);
      if (faulty.Passes()) continue;  // By chance, nothing else was alive there.
      ++failed;
      CAPTURE(faulty.Name(a));
      CAPTURE(faulty.Name(b));
      faulty.CheckFails({"\""});
    }
  }
  CHECK(failed > 3);
}

void FindsSharedMemory(ActivationType type) {
  FaultyPlan faulty(type);
  // The second tensor is made while the first is alive, and the first is read later.
  const Program& program = faulty.plan().program;
  const auto first =
      std::find_if(faulty.actions().begin(), faulty.actions().end(), [&](const Action& action) {
        return action.kind == ActionKind::kAllocate && IsTensor(faulty, program, action.buffer);
      });
  const auto second = std::find_if(first + 1, faulty.actions().end(), [&](const Action& action) {
    return action.kind == ActionKind::kAllocate && IsTensor(faulty, program, action.buffer);
  });
  REQUIRE(second != faulty.actions().end());
  const auto reader = std::find_if(second, faulty.actions().end(), [&](const Action& action) {
    return faulty.Reads(action, first->buffer);
  });
  REQUIRE(reader != faulty.actions().end());
  auto& offsets = faulty.plan().offsets;
  offsets[static_cast<size_t>(second->buffer)] = offsets[static_cast<size_t>(first->buffer)];
  faulty.CheckFails({faulty.Name(first->buffer)});
}

void FindsMisplacedBuffers(ActivationType type) {
  FaultyPlan outside(type);
  outside.plan().offsets[0] = outside.plan().arena_bytes;
  outside.CheckFails({"buffer 0 lies outside the arena"});
  FaultyPlan unaligned(type);
  unaligned.plan().offsets[0] = Bytes(4);
  unaligned.CheckFails({"buffer 0 begins at byte 4", "needs multiples of "});
}

void FindsWrongPeak(ActivationType type) {
  FaultyPlan faulty(type);
  faulty.plan().predicted_peak += Bytes(1);
  CHECK_FALSE(faulty.Passes());
}

void ForEachType(void (*check)(ActivationType)) {
  for (const ActivationType type : StoredTypes(*MakeTestBackend())) {
    CAPTURE(NameOf(type));
    check(type);
  }
}

}  // namespace

TEST_CASE("fault: without one, the plan passes") { ForEachType(PassesWithout); }
TEST_CASE("fault: a free is missing") { ForEachType(FindsMissingFree); }
TEST_CASE("fault: every free that comes one reader too early") { ForEachType(FindsEveryEarlyFree); }
TEST_CASE("fault: the offsets of two tensors are swapped") { ForEachType(FindsSwappedOffsets); }
TEST_CASE("fault: a tensor lies where another one still lives") { ForEachType(FindsSharedMemory); }
TEST_CASE("fault: an offset beyond the arena, and one that is not aligned") {
  ForEachType(FindsMisplacedBuffers);
}
TEST_CASE("fault: the predicted peak is wrong by a byte") { ForEachType(FindsWrongPeak); }

}  // namespace ckplan
