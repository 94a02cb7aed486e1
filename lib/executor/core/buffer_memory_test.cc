// Tests that steps which move tensors and gradients to the host compute the same gradients in the
// predicted memory of the device and of the host, and that a wait which is missing is found.
#include "lib/executor/core/buffer_memory.h"

#include <algorithm>
#include <utility>

#include "lib/executor/backend/backend.h"
#include "lib/executor/core/testing/steps.h"

namespace ckplan {
namespace {

bool MovesGradients(const Program& program) {
  return std::any_of(program.actions.begin(), program.actions.end(), [&](const Action& action) {
    return action.kind == ActionKind::kIn &&
           program.buffers[static_cast<size_t>(action.buffer)].kind == BufferKind::kGradient;
  });
}

void CheckRandomMoves(ActivationType type) {
  const auto backend = MakeTestBackend();
  SmallStep small(*backend, SmallNet(), 2, type);
  const PlacedProgram keep_all = small.KeepAll();
  int with_gradients = 0;
  int64_t moved = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const PlacedProgram plan = small.RandomMoves(rng, static_cast<int>(rng.Between(20, 100)));
    const ValidationReport report = small.Validate(keep_all, plan, seed == 1 ? 1 : 0);
    for (const Error& failure : report.failures) FAIL_CHECK(failure.message);
    CHECK(report.plan.arena_peak.total == plan.predicted_peak);
    CHECK(report.plan.counted_peak.total == plan.predicted_peak);
    CHECK(report.plan.host_peak == plan.predicted_host_peak);
    CHECK(report.plan.counted_host_peak == plan.predicted_host_peak);
    CHECK(report.plan.host_bytes >= plan.predicted_host_peak);
    with_gradients += MovesGradients(plan.program) ? 1 : 0;
    moved += static_cast<int64_t>(plan.program.copies.size());
  }
  CHECK(with_gradients > 0);
  CHECK(moved > 50);
}

// A backend whose link forgets to wait.
class ForgettingLink final : public CopyLink {
 public:
  ForgettingLink(std::unique_ptr<CopyLink> link, bool forgets_out, bool forgets_in)
      : link_(std::move(link)), forgets_out_(forgets_out), forgets_in_(forgets_in) {}

  Result<void*> AllocateHost(int64_t bytes) override { return link_->AllocateHost(bytes); }
  void ReleaseHost(void* memory) override { link_->ReleaseHost(memory); }
  size_t CopyOut(void* host, const void* device, int64_t bytes) override {
    return Numbered(link_->CopyOut(host, device, bytes), forgets_out_);
  }
  size_t CopyIn(void* device, const void* host, int64_t bytes) override {
    return Numbered(link_->CopyIn(device, host, bytes), forgets_in_);
  }
  void FillHost(void* host, int byte, int64_t bytes) override {
    link_->FillHost(host, byte, bytes);
  }
  void Wait(size_t copy) override {
    const auto [number, is_forgotten] = copies_[copy];
    if (!is_forgotten) link_->Wait(number);
  }

 private:
  size_t Numbered(size_t number, bool is_forgotten) {
    copies_.emplace_back(number, is_forgotten);
    return copies_.size() - 1;
  }

  std::unique_ptr<CopyLink> link_;
  bool forgets_out_;
  bool forgets_in_;
  std::vector<std::pair<size_t, bool>> copies_;
};

class ForgettingBackend final : public ForwardingBackend {
 public:
  ForgettingBackend(bool forgets_out, bool forgets_in)
      : ForwardingBackend(MakeTestBackend()), forgets_out_(forgets_out), forgets_in_(forgets_in) {}
  std::unique_ptr<CopyLink> MakeCopyLink(const CopyLinkOptions& options) override {
    return std::make_unique<ForgettingLink>(ForwardingBackend::MakeCopyLink(options), forgets_out_,
                                            forgets_in_);
  }

 private:
  bool forgets_out_;
  bool forgets_in_;
};

Error FailureOf(Backend& backend) {
  SmallStep small(backend, SmallNet(), 2, ActivationType::kFloat32);
  Rng rng(3);
  const PlacedProgram plan = small.RandomMoves(rng, 100);
  const ValidationReport report = small.Validate(small.KeepAll(), plan);
  REQUIRE(report.failures.size() == 1);
  return report.failures.front();
}

bool Says(const Error& error, std::string_view part) {
  CAPTURE(error.message);
  return error.message.find(part) != std::string::npos;
}

// A program that copies three tensors of 64 bytes.
Program ThreeCopies() {
  Program program;
  for (int32_t i = 0; i < 3; ++i) program.copies.push_back({TensorId(i), Bytes(64), i, i});
  return program;
}

}  // namespace

TEST_CASE("host copies: moved tensors and gradients come back bit for bit, in predicted memory") {
  ForEachType(CheckRandomMoves);
}

TEST_CASE("host copies: a wait for a copy to the host that is missing is found") {
  ForgettingBackend backend(true, false);
  CHECK(Says(FailureOf(backend), "but the host returned other bytes than were copied to it"));
}

TEST_CASE("host copies: a wait for a copy back that is missing is found") {
  ForgettingBackend backend(false, true);
  CHECK(Says(FailureOf(backend), "but the host returned other bytes than were copied to it"));
}

TEST_CASE("host copies: a read before the wait is found") {
  const auto backend = MakeTestBackend();
  SmallStep small(*backend, SmallNet(), 2, ActivationType::kFloat32);
  Rng rng(3);
  PlacedProgram plan = small.RandomMoves(rng, 100);
  std::erase_if(plan.program.actions,
                [](const Action& action) { return action.kind == ActionKind::kArrive; });
  const ValidationReport report = small.Validate(small.KeepAll(), plan);
  REQUIRE(report.failures.size() == 1);
  CHECK(Says(report.failures.front(), "which was never written"));
}

TEST_CASE("host copies: two copies in one place are found") {
  const auto backend = MakeTestBackend();
  SmallStep small(*backend, SmallNet(), 2, ActivationType::kFloat32);
  Rng rng(3);
  PlacedProgram plan = small.RandomMoves(rng, 100);
  for (Bytes& offset : plan.host_offsets) offset = Bytes(0);
  const ValidationReport report = small.Validate(small.KeepAll(), plan);
  REQUIRE(report.failures.size() == 1);
  CHECK(Says(report.failures.front(), "the host returned other bytes"));
}

TEST_CASE("host copies: places outside the block, and too few of them, are refused") {
  const auto backend = MakeTestBackend();
  const Program program = ThreeCopies();
  const auto place = [&](std::vector<Bytes> offsets, int64_t bytes) {
    return HostCopies::CreateInSlab(*backend, program, std::move(offsets), Bytes(bytes), {});
  };
  CHECK(place({Bytes(0), Bytes(64), Bytes(128)}, 192).ok());
  CHECK(Says(place({Bytes(0), Bytes(64), Bytes(129)}, 192).error(), "copy 2 lies outside"));
  CHECK(Says(place({Bytes(0), Bytes(-8), Bytes(64)}, 192).error(), "copy 1 lies outside"));
  CHECK(Says(place({Bytes(0), Bytes(64)}, 192).error(), "places 2 copies on the host"));
}

TEST_CASE("host copies: what is on the host is counted") {
  const auto backend = MakeTestBackend();
  const Program program = ThreeCopies();
  const auto copies =
      HostCopies::CreateInSlab(*backend, program, {Bytes(0), Bytes(64), Bytes(0)}, Bytes(128), {});
  REQUIRE(copies.ok());
  void* const memory = *backend->Allocate(64);
  for (const int32_t copy : {0, 1}) {
    REQUIRE((*copies)->Out(copy, memory).ok());
    (*copies)->Drop(copy);
  }
  (*copies)->Forget(0);
  CHECK((*copies)->live() == Bytes(64));
  REQUIRE((*copies)->Out(2, memory).ok());
  (*copies)->Drop(2);
  CHECK((*copies)->live() == Bytes(128));
  CHECK((*copies)->peak() == Bytes(128));
  backend->Release(memory);
}

TEST_CASE("copy link: copies bring bytes there and back, in either duplex") {
  const auto backend = MakeTestBackend();
  for (const bool is_half_duplex : {false, true}) {
    const auto link = backend->MakeCopyLink({is_half_duplex, false});
    std::vector<char> bytes(1000);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
    void* const first = *backend->Allocate(1000);
    void* const second = *backend->Allocate(1000);
    void* const host = *link->AllocateHost(1000);
    backend->Upload(first, bytes.data(), 1000);
    link->Wait(link->CopyOut(host, first, 1000));
    link->Wait(link->CopyIn(second, host, 1000));
    std::vector<char> back(1000);
    backend->Download(back.data(), second, 1000);
    CHECK(back == bytes);
    link->ReleaseHost(host);
    link->ReleaseHost(nullptr);
    backend->Release(first);
    backend->Release(second);
  }
}

TEST_CASE("copy link: a late thread copies when it is waited for, and not before") {
  ThreadLink link({false, true});
  char from = 1;
  char to = 0;
  const size_t first = link.CopyIn(&to, &from, 1);
  const size_t other = link.CopyOut(&to, &from, 0);
  link.Wait(other);  // The other lane.
  CHECK(to == 0);
  from = 2;
  link.Wait(first);
  CHECK(to == 2);
}

}  // namespace ckplan
