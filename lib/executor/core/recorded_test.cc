// Steps that are recorded once and started again as a whole.
#include "lib/executor/core/testing/steps.h"

namespace ckplan {
namespace {

TEST_CASE(
    "recorded steps: the loss and the gradients have the bits of the step, as often as it is "
    "started") {
  const auto backend = MakeTestBackend();
  for (const ActivationType type : StoredTypes(*backend)) {
    CAPTURE(NameOf(type));
    SmallStep small(*backend, SmallNet(), 3, type);
    Rng rng(7);
    const PlacedProgram plan = small.Random(rng, 40);
    const auto gradients = [&small] {
      std::vector<std::vector<float>> all;
      for (const ConstantId leaf : small.constants().trained()) {
        all.push_back(small.constants().DownloadGradient(leaf));
      }
      return all;
    };
    const double loss = small.Run(plan, LossKind::kCrossEntropy);
    const auto expected = gradients();
    const std::vector<double> recorded = small.RunRecorded(plan, LossKind::kCrossEntropy, 3);
    CHECK(recorded.empty() == !backend->IsAsynchronous());
    if (recorded.empty()) continue;
    for (const double again : recorded) CHECK(again == loss);
    CHECK(gradients() == expected);
  }
}

TEST_CASE("recorded steps: validation runs them and compares their gradients") {
  const auto backend = MakeTestBackend();
  SmallStep small(*backend, SmallNet(), 2);
  const PlacedProgram keep_all = small.KeepAll();
  Rng rng(3);
  ValidateOptions options;
  options.timed_runs = 1;
  options.records_steps = true;
  const ValidationReport report = small.Validate(keep_all, small.Random(rng, 50), options);
  for (const Error& failure : report.failures) FAIL_CHECK(failure.message);
  CHECK(report.plan.seconds.value_or(0) > 0);
}

}  // namespace
}  // namespace ckplan
