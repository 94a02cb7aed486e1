#include "lib/planning/algorithms/hong/checkpoint_selection.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/rng.h"
#include "lib/base/stop.h"
#include "lib/testing/graph_text.h"

namespace ckplan {
namespace {

LayerList ListOf(const std::vector<int64_t>& sizes) {
  LayerList list;
  for (size_t i = 0; i < sizes.size(); ++i) {
    list.sizes.push_back(Bytes(sizes[i]));
    list.candidates.push_back(i);
    list.nodes.push_back(NodeId());
  }
  return list;
}

// Makes a random list. Candidates are both ends and some of the elements between them.
LayerList RandomList(Rng& rng) {
  LayerList list;
  const int64_t n = rng.Between(1, 11);
  const int64_t largest = rng.Chance(50) ? 3 : 30;
  const int percent = rng.Chance(50) ? 100 : 60;
  for (int64_t i = 0; i < n; ++i) {
    if (i == 0 || i == n - 1 || rng.Chance(percent)) list.candidates.push_back(list.sizes.size());
    list.sizes.push_back(Bytes(rng.Between(0, largest)));
    list.nodes.push_back(NodeId());
  }
  return list;
}

template <typename Objective>
Bytes MinOfAllChoices(const LayerList& list, Objective objective) {
  Bytes best = Bytes::Max();
  const size_t inner = list.candidates.size() < 2 ? 0 : list.candidates.size() - 2;
  for (uint32_t bits = 0; bits < uint32_t{1} << inner; ++bits) {
    std::vector<size_t> choice = {list.candidates.front()};
    for (size_t i = 0; i < inner; ++i) {
      if ((bits >> i & 1) != 0) choice.push_back(list.candidates[i + 1]);
    }
    if (list.candidates.size() > 1) choice.push_back(list.candidates.back());
    best = std::min(best, objective(list, choice));
  }
  return best;
}

}  // namespace

TEST_CASE("hong: j + 1 in Alg. 6 is the next element of Q; read as an index it gives 14 here") {
  const LayerList list = ListOf({2, 3, 3, 1, 1, 3, 2});
  CHECK(SelectDynamicLinear(list).objective == Bytes(12));
  CHECK(SelectDynamic(list, {})->objective == Bytes(12));
}

TEST_CASE("hong: Eq. 6 and Eq. 12 of one choice, worked by hand") {
  // d = 2 3 3 1 1 3 2 with checkpoints 0, 2, 6: segments {3}, {1, 1, 3}.
  const LayerList list = ListOf({2, 3, 3, 1, 1, 3, 2});
  CHECK(StaticObjective(list, {0, 2, 6}) == Bytes(2 + 3 + 2 + 5));
  // i = 2: 2 + 3 are kept, the segment is 3, the maximum of d_0, d_1 is 3. i = 6: 7 are kept, then
  // 5 and 3.
  CHECK(DynamicObjective(list, {0, 2, 6}) == Bytes(15));
}

TEST_CASE("hong: all three equal trying every choice of checkpoints") {
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const LayerList list = RandomList(rng);
    const Checkpoints selected = *SelectStatic(list, {});
    CHECK(selected.objective == MinOfAllChoices(list, StaticObjective));
    CHECK(StaticObjective(list, selected.positions) == selected.objective);
    const Bytes dynamic = MinOfAllChoices(list, DynamicObjective);
    const Checkpoints quadratic = *SelectDynamic(list, {});
    CHECK(quadratic.objective == dynamic);
    CHECK(DynamicObjective(list, quadratic.positions) == dynamic);
    const Checkpoints linear = SelectDynamicLinear(list);
    CHECK(linear.objective == dynamic);
    CHECK(DynamicObjective(list, linear.positions) == dynamic);
  }
}

TEST_CASE("hong: the linear algorithm equals the quadratic one on longer lists") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    std::vector<int64_t> sizes;
    for (int i = 0; i < 400; ++i) sizes.push_back(rng.Between(1, seed % 2 == 0 ? 5 : 1000));
    const LayerList list = ListOf(sizes);
    CHECK(SelectDynamicLinear(list).objective == SelectDynamic(list, {})->objective);
  }
}

TEST_CASE("hong: a stop request ends the slower two") {
  std::stop_source source;
  source.request_stop();
  const LayerList list = ListOf({1, 2, 3});
  CHECK(SelectStatic(list, source.get_token()).error().code == ErrorCode::kTimeout);
  CHECK(SelectDynamic(list, source.get_token()).error().code == ErrorCode::kTimeout);
}

TEST_CASE("hong: a later stop leaves the best checkpoints so far, without a proof") {
  Rng rng(3);
  std::vector<int64_t> sizes;
  for (int i = 0; i < 1000; ++i) sizes.push_back(rng.Between(1, 1000));
  const LayerList list = ListOf(sizes);
  const Checkpoints best = *SelectStatic(list, {});
  std::stop_source source;
  int64_t polls = 0;
  const StopScope scope({}, [&](int64_t) {
    if (++polls == 3000) source.request_stop();
  });
  const Checkpoints found = *SelectStatic(list, source.get_token());
  CHECK(best.is_proven);
  CHECK(!found.is_proven);
  CHECK(found.objective == StaticObjective(list, found.positions));
  CHECK(found.objective > best.objective);
}

TEST_CASE("hong: the least static checkpoints of a hundred thousand layers take few solutions") {
  Rng rng(7);
  std::vector<int64_t> sizes;
  for (int i = 0; i < 100'000; ++i) sizes.push_back(64 * rng.Between(1, 16));
  int64_t polls = 0;  // There is one poll for each layer of each solution.
  const StopScope scope({}, [&](int64_t) { ++polls; });
  CHECK(SelectStatic(ListOf(sizes), {}).ok());
  CHECK(polls < 300 * 100'000);
}

TEST_CASE("layer list: inner tensors of a block are not candidates, its ends are") {
  //        ┌─ c ─┐
  //   a ─ b      e ─ f
  //        └─ d ─┘
  const TensorGraph graph = GraphFromText("a:1 -> b:2 -> c:3 -> e:4 -> f:5; b -> d:6 -> e");
  const LayerList list = ListLayers(graph, VertexGraph(graph));
  CHECK(list.sizes.size() == 6);  // There are no inputs, so the list begins with the first vertex.
  CHECK(list.candidates == std::vector<size_t>{0, 1, 4, 5});
  int32_t segments = 0;
  const auto segment_of = list.Cut({0, 1, 5}, &segments);
  CHECK(segments == 3);
  CHECK(segment_of == IdVector<NodeId, int32_t>(std::vector<int32_t>{0, 1, 2, 2, 2, 2}));
}

TEST_CASE("layer list: a reader without gradient keeps the first vertex from being d_0") {
  // mask reads a and needs no gradient, so it belongs to the block that a ends: {mask, a}.
  TensorGraphParts parts = PartsOf(GraphFromText("a:1 -> mask:2 -> c:3; a -> c -> d:4"));
  parts.tensors[parts.nodes[NodeId(1)].outputs.front()].requires_grad = false;
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const LayerList list = ListLayers(graph, VertexGraph(graph));
  CHECK(list.nodes == std::vector{NodeId(), NodeId(1), NodeId(0), NodeId(2), NodeId(3)});
  CHECK(list.candidates == std::vector<size_t>{0, 2, 3, 4});
  int32_t segments = 0;
  const auto segment_of = list.Cut({0, 2, 4}, &segments);
  CHECK(segments == 2);
  CHECK(segment_of == IdVector<NodeId, int32_t>(std::vector<int32_t>{0, 0, 1, 1}));
}

}  // namespace ckplan
