#include "lib/executor/core/train.h"

#include "lib/executor/core/profile.h"
#include "lib/executor/core/testing/steps.h"

namespace ckplan {
namespace {

std::vector<double> LossesOf(Backend& backend, ActivationType type, bool keeps_all) {
  SmallStep small(backend, SmallNet(), 4, type);
  Rng rng(11);
  const PlacedProgram plan = keeps_all ? small.KeepAll() : small.Random(rng, 30);
  TrainOptions options;
  options.steps = 12;
  options.learning_rate = 0.05;
  size_t reported = 0;
  const Result<std::vector<TrainedStep>> steps =
      Train(backend, small.step(), small.operators(), small.constants(), plan, options,
            [&](const TrainedStep&) { ++reported; });
  REQUIRE(steps.ok());
  CHECK(reported == steps->size());
  std::vector<double> losses;
  for (const TrainedStep& step : *steps) losses.push_back(step.loss);
  return losses;
}

}  // namespace

TEST_CASE("train: the loss falls, and falls equally when most tensors are recomputed") {
  const auto backend = MakeTestBackend();
  for (const ActivationType type : StoredTypes(*backend)) {
    CAPTURE(NameOf(type));
    const std::vector<double> kept = LossesOf(*backend, type, true);
    REQUIRE(kept.size() == 12);
    CHECK(kept.back() < kept.front());
    CHECK(LossesOf(*backend, type, false) == kept);
  }
}

TEST_CASE("profile: every node has its time and the workspace that it was prepared with") {
  const auto backend = MakeTestBackend();
  SmallStep small(*backend, SmallNet(), 2);
  ProfileOptions options;
  options.runs = 1;
  const auto nodes =
      ProfileNodes(*backend, small.step(), small.operators(), small.constants(), options);
  REQUIRE(nodes.ok());
  REQUIRE(nodes->size() == small.step().graph.nodes().size());
  double forward = 0;
  for (const NodeId id : small.step().graph.nodes().ids()) {
    const ProfiledNode& node = (*nodes)[static_cast<size_t>(id.index())];
    CHECK(node.name == small.step().graph.node(id).name);
    CHECK(node.workspace.forward == small.operators().workspaces[id].forward);
    CHECK(node.workspace.backward == small.operators().workspaces[id].backward);
    forward += node.forward_seconds;
  }
  CHECK(forward > 0);
}

}  // namespace ckplan
