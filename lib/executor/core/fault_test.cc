// Tests that validation finds faults: a plan with one fault must fail at the step and the tensor
// where the fault shows.
#include <algorithm>

#include "lib/executor/core/testing/steps.h"

namespace ckplan {
namespace {

class FaultyPlan {
 public:
  explicit FaultyPlan(ActivationType type, const NetText& net = SmallNet())
      : backend_(MakeTestBackend()), small_(*backend_, net, 2, type) {
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

  // Checks that the plan has a single failure, whose message contains all of `parts`.
  Error CheckFails(const std::vector<std::string>& parts) {
    const ValidationReport report = small_.Validate(keep_all_, plan_);
    REQUIRE(report.failures.size() == 1);
    const std::string& failure = report.failures.front().message;
    CAPTURE(failure);
    CHECK(failure.find("the plan: ") == 0);
    for (const std::string& part : parts) {
      CAPTURE(part);
      CHECK(failure.find(part) != std::string::npos);
    }
    return report.failures.front();
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
    if (!faulty.Reads(whole[reader], buffer)) continue;  // The buffer is written but never read.
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
      // A larger buffer in the place of a smaller one must overlap other buffers.
      const auto a = static_cast<int32_t>(i);
      const auto b = static_cast<int32_t>(k);
      if (k % 7 != i % 7 || !IsTensor(whole, whole.plan().program, a) ||
          !IsTensor(whole, whole.plan().program, b) || buffers[i].bytes == buffers[k].bytes) {
        continue;
      }
      FaultyPlan faulty(type);
      std::swap(faulty.plan().offsets[i], faulty.plan().offsets[k]);
      if (faulty.Passes()) continue;  // By chance, no other live buffer lies there.
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
  // Finds a tensor that is made while an earlier tensor lives which is read later.
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
  // The ends of the last two offsets overflow 64 bits.
  const int64_t alignment = MakeTestBackend()->alignment();
  const Bytes arena = FaultyPlan(type).plan().arena_bytes;
  const Bytes last = Bytes::Max() - Bytes(Bytes::Max().count() % alignment);
  for (const Bytes offset : {arena, Bytes(-alignment), last, Bytes::Max()}) {
    CAPTURE(offset.count());
    FaultyPlan outside(type);
    outside.plan().offsets[0] = offset;
    outside.CheckFails({"buffer 0 lies outside the arena"});
  }
  FaultyPlan shrunk(type);
  shrunk.plan().arena_bytes = Bytes(-1);
  shrunk.CheckFails({"buffer 0 lies outside the arena of -1 bytes"});
  FaultyPlan missing(type);
  missing.plan().offsets.pop_back();
  missing.CheckFails({"the plan places ", " buffers, but the step has "});
}

void FindsUnalignedBuffer(ActivationType type) {
  FaultyPlan unaligned(type);
  unaligned.plan().offsets[0] = Bytes(4);
  const Error failure = unaligned.CheckFails({"buffer 0 begins at byte 4", "needs multiples of "});
  REQUIRE(failure.remedy.settings.size() == 1);
  CHECK(failure.remedy.settings[0].name == "align");
  CHECK(failure.remedy.settings[0].value == std::to_string(MakeTestBackend()->alignment()));
}

// Backward of the LSTM first computes the gradients of its gates in the workspace. From them it
// writes the gradient of its input and then the gradient of its initial state.
const NetText kStatefulNet{
    "g (float[3,N,2] x, float[1,N,2] s) => (float[3,1,N,2] y) { u = Mul(x, w) h = Mul(s, v) "
    "  y = LSTM<hidden_size = 2>(u, p, r, , , h) }",
    {{"w", {2}}, {"v", {2}}, {"p", {1, 8, 2}}, {"r", {1, 8, 2}}}};

const Action& GradientOfState(const Program& program) {
  return *std::find_if(program.actions.begin(), program.actions.end(), [](const Action& action) {
    return action.kind == ActionKind::kBackward && action.position == 5;
  });
}

// Moves the gradient of the state into the workspace, to every possible place. Parts of the
// workspace are no longer needed by then.
void FindsDamagedWorkspace(ActivationType type) {
  const int64_t step = BufferAlignment(*MakeTestBackend());
  int found = 0;
  for (int64_t into = 0;; into += step) {
    FaultyPlan faulty(type, kStatefulNet);
    const Program& program = faulty.plan().program;
    const Action& action = GradientOfState(program);
    const int32_t buffer = program.calls[static_cast<size_t>(action.call)].workspace;
    if (buffer == kNoBuffer) {
      CHECK(MakeTestBackend()->name() == "cuda");  // The host computes LSTM, in memory of its own.
      return;
    }
    const auto workspace = static_cast<size_t>(buffer);
    if (Bytes(into) >= program.buffers[workspace].bytes) break;
    auto& offsets = faulty.plan().offsets;
    offsets[static_cast<size_t>(action.buffer)] = offsets[workspace] + Bytes(into);
    const Error failure = faulty.CheckFails({"step "});
    found += failure.message.find(
                 "reads the workspace of \"LSTM:y\", but its memory was "
                 "overwritten") != std::string::npos
                 ? 1
                 : 0;
  }
  CHECK(found > 0);
}

void FindsWrongPeak(ActivationType type) {
  FaultyPlan faulty(type);
  faulty.plan().predicted_peak += Bytes(1);
  CHECK_FALSE(faulty.Passes());
}

}  // namespace

TEST_CASE("fault: without one, the plan passes") { ForEachType(PassesWithout); }
TEST_CASE("fault: one release is missing") { ForEachType(FindsMissingFree); }
TEST_CASE("fault: each release comes one reader too early") { ForEachType(FindsEveryEarlyFree); }
TEST_CASE("fault: the offsets of two tensors are swapped") { ForEachType(FindsSwappedOffsets); }
TEST_CASE("fault: a tensor lies in the memory of another live tensor") {
  ForEachType(FindsSharedMemory);
}
TEST_CASE("fault: an offset beyond the arena, or beyond 64 bits") {
  ForEachType(FindsMisplacedBuffers);
}
TEST_CASE("fault: an offset that is not aligned, and its remedy") {
  ForEachType(FindsUnalignedBuffer);
}
TEST_CASE("fault: a gradient lies in the workspace that the next one needs") {
  ForEachType(FindsDamagedWorkspace);
}
TEST_CASE("fault: the predicted peak is wrong by a byte") { ForEachType(FindsWrongPeak); }

}  // namespace ckplan
