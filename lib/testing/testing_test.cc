#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {

TEST_CASE("graph text: sizes, costs, edges and outputs are as drawn") {
  const TensorGraph graph = GraphFromText("a:4@1 -> b:2@3 -> c:1; a -> c; lone:7@0");
  REQUIRE(graph.nodes().size() == 4);
  const Node& c = graph.node(NodeId(2));
  CHECK(c.name == "c");
  CHECK(c.inputs == std::vector<TensorId>{TensorId(1), TensorId(0)});
  CHECK(c.backward_reads == std::vector<TensorId>{TensorId(1), TensorId(0), TensorId(2)});
  CHECK(c.forward_cost == Cost(1));
  CHECK(graph.tensor(TensorId(0)).bytes == Bytes(4));
  CHECK(graph.node(NodeId(1)).forward_cost == Cost(3));
  CHECK(graph.outputs() == std::vector<TensorId>{TensorId(2), TensorId(3)});
}

// a ──▶ c ──▶ d     c is drawn before b, but reads it.
// └──▶ b ─▲
TEST_CASE("graph text: node i makes tensor i, also when the text is not in topological order") {
  const TensorGraph graph = GraphFromText("a:1@1 -> c:3@1 -> d:4@1; a -> b:2@1 -> c");
  std::string names;
  for (const NodeId id : graph.nodes().ids()) {
    const Node& node = graph.node(id);
    names += node.name;
    CHECK(node.outputs == std::vector<TensorId>{TensorId(id.index())});
    CHECK(node.file_id == id.index());
    CHECK(graph.tensor(node.outputs.front()).file_id == id.index());
    CHECK(graph.tensor(node.outputs.front()).name == node.name);
  }
  CHECK(names == "abcd");
  CHECK(graph.outputs() == std::vector<TensorId>{TensorId(3)});
}

TEST_CASE("random graphs: the seed determines the graph") {
  Rng first(7), second(7), other(8);
  const TensorGraph graph = RandomTensorGraph(first);
  CHECK(graph == RandomTensorGraph(second));
  CHECK(graph != RandomTensorGraph(other));
  CHECK(RandomDag(first, 8, 40, 9, 5) == RandomDag(second, 8, 40, 9, 5));
}

TEST_CASE("random graphs: a hundred of them show every feature of the model") {
  int second_output = 0, statistic = 0, duplicate = 0, in_place = 0, passthrough = 0;
  int random = 0, workspace = 0, no_gradient = 0, input_gradient = 0, outputs = 0, dead_end = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    CHECK(graph.nodes().size() == 12);
    outputs += graph.outputs().size() > 1;
    for (const Tensor& tensor : graph.tensors()) {
      const bool is_activation = tensor.kind == TensorKind::kActivation;
      statistic += tensor.kind == TensorKind::kStatistic;
      no_gradient += is_activation && !tensor.requires_grad;
      input_gradient += tensor.kind == TensorKind::kInput && tensor.requires_grad;
      dead_end += is_activation && tensor.consumers.empty();
    }
    for (const Node& node : graph.nodes()) {
      second_output += node.outputs.size() > 1;
      duplicate += node.inputs.size() > 1 && node.inputs.front() == node.inputs.back();
      in_place += !node.in_place.empty();
      passthrough += !node.gradient_passthrough.empty();
      random += node.is_random;
      workspace += node.forward_workspace > Bytes(0) && node.backward_workspace > Bytes(0);
    }
  }
  for (const int seen : {second_output, statistic, duplicate, in_place, passthrough, random,
                         workspace, no_gradient, input_gradient, outputs, dead_end}) {
    CHECK(seen > 20);
  }
}

TEST_CASE("random graphs: a dag's edges go from lower to higher numbers, each pair at most once") {
  Rng rng(3);
  const TensorGraph graph = RandomDag(rng, 10, 50, 9, 5);
  size_t edges = 0;
  for (const NodeId id : graph.nodes().ids()) {
    const Node& node = graph.node(id);
    edges += node.inputs.size();
    for (const TensorId input : node.inputs) CHECK(input.index() < id.index());
    for (size_t i = 1; i < node.inputs.size(); ++i) CHECK(node.inputs[i - 1] < node.inputs[i]);
  }
  CHECK((edges > 10 && edges < 35));
}

TEST_CASE("random joint graphs: the seed determines the graph and the plan") {
  Rng first(7), second(7), other(8);
  const JointGraph graph = RandomJointGraph(first);
  CHECK(graph == RandomJointGraph(second));
  CHECK(graph != RandomJointGraph(other));
  CHECK(RandomRuns(first, graph) == RandomRuns(second, graph));
}

TEST_CASE("random joint graphs: a hundred of them show every feature, and all plans are valid") {
  int second_write = 0, no_write = 0, alias = 0, in_place = 0, never = 0, gradients = 0;
  int given_results = 0, repeats = 0, dropped = 0, reordered = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng);
    for (const Value& value : graph.values()) {
      alias += value.alias_of.is_none() ? 0 : 1;
      gradients += value.kind == ValueKind::kParameterGradient;
      given_results += value.is_result && value.producer.is_none();
    }
    for (const Operation& op : graph.ops()) {
      second_write += op.writes.size() > 1;
      no_write += op.writes.empty();
      in_place += op.in_place.empty() ? 0 : 1;
      never += op.may_repeat ? 0 : 1;
    }
    const std::vector<OpId> runs = RandomRuns(rng, graph);
    const std::set<OpId> different(runs.begin(), runs.end());
    repeats += runs.size() > different.size();
    dropped += different.size() < graph.ops().size();
    reordered += std::is_sorted(runs.begin(), runs.end()) ? 0 : 1;
    CHECK(Simulator(graph).Run(runs).ok());
  }
  for (const int count :
       {second_write, alias, in_place, never, gradients, repeats, dropped, reordered}) {
    CHECK(count > 10);
  }
  CHECK((no_write > 0 && given_results > 0));
}

}  // namespace ckplan
