#include "lib/executor/core/constant_store.h"

#include "lib/executor/backend/backend.h"
#include "lib/executor/core/testing/steps.h"

namespace ckplan {
namespace {

// A backend that reports little memory and counts the allocations.
class SmallBackend final : public ForwardingBackend {
 public:
  explicit SmallBackend(int64_t available)
      : ForwardingBackend(MakeTestBackend()), available_(available) {}

  int64_t AvailableBytes() const override { return available_; }
  Result<void*> Allocate(int64_t bytes) override {
    ++allocations_;
    return ForwardingBackend::Allocate(bytes);
  }
  int allocations() const { return allocations_; }

 private:
  int64_t available_;
  int allocations_ = 0;
};

// Bytes of a parameter of 64 numbers, its gradient, and a batch of 16 numbers.
constexpr int64_t kNeeded = (64 + 64 + 16) * 4;

}  // namespace

TEST_CASE("constants: too much for the device is refused before anything is allocated") {
  const NetText net{"g (float[2,8] x) => (float[2,8] y) { y = MatMul(x, w) }", {{"w", {8, 8}}}};
  const auto backend = MakeTestBackend();
  const SmallStep small(*backend, net);
  const TemporaryFile file("constants.onnx");
  file.Write(ModelFileBytes(net.graph, net.parameters));
  const WeightFile weights = WeightFile::Open(file.path()).value();
  SmallBackend enough(kNeeded);
  CHECK(ConstantStore::Create(enough, small.step(), small.operators(), weights, 1).ok());
  CHECK(enough.allocations() > 0);
  SmallBackend less(kNeeded - 1);
  const auto store = ConstantStore::Create(less, small.step(), small.operators(), weights, 1);
  REQUIRE_FALSE(store.ok());
  CHECK(store.error().code == ErrorCode::kInfeasible);
  CHECK(store.error().message.find("need 576 bytes of memory, and the ") != std::string::npos);
  CHECK(store.error().message.find(" backend has 575 left") != std::string::npos);
  CHECK(less.allocations() == 0);
}

}  // namespace ckplan
