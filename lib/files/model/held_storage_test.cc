// Tests which memory is held because a part of it is saved.
// python/tests/torch_tests/test_eager_notes.py measures such a network against PyTorch's eager
// step.
#include "lib/files/model/held_storage.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/files/model/testing/proto.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {
namespace {

constexpr const char* kHeldHead =
    "g (float[2,3,8] x, float[2,8,3] z) => (float[A,B,C] y) <float[8,8] w = "
    "{1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,"
    "2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1}, float[4,4] v = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, "
    "int64[2] halves = {4,4}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, "
    "int64[1] three = {3}, int64[1] four = {4}, int64[1] back = {-1}, int64[1] far = {-99}, "
    "int64 first = {0}, int64[1] firsts = {0}, int64[2] flat = {4,8}, int64[3] rows = {2,6,4}> ";

ModelGraph LoweredAsCaptured(const std::string& body, Autograd autograd = Autograd::kTorch) {
  LoadOptions options;
  options.restored = RestoredOperators::kCaptured;
  options.autograd = autograd;
  return LowerText(kHeldHead + ("{ h = MatMul(x, w) " + body + " }"), options, autograd);
}

// Returns the rests, each with its bytes and the operators that hold it: "h:rest 96 Mul".
std::string RestsOf(const TensorGraph& graph) {
  std::string rests;
  for (const TensorId id : graph.tensors().ids()) {
    const Tensor& tensor = graph.tensor(id);
    if (!tensor.name.ends_with(":rest")) continue;
    CHECK_FALSE(tensor.requires_grad);
    rests += (rests.empty() ? "" : ", ") + tensor.name + " " + std::to_string(tensor.bytes.count());
    for (const Node& node : graph.nodes()) {
      const auto& reads = node.backward_reads;
      if (std::count(reads.begin(), reads.end(), id) > 0) rests += " " + node.op;
    }
  }
  return rests;
}

std::string RestsOf(const std::string& body) { return RestsOf(LoweredAsCaptured(body).graph); }

TEST_CASE("held storage: a saved half holds the other half, which the last reader of both makes") {
  // glu: x.chunk(2, -1), sigmoid of one half. The sigmoid saves its result, the product both
  // factors.
  const std::string glu = "a, b = Split<axis = 2>(h, halves) s = Sigmoid(a) y = Mul(s, b)";
  const TensorGraph graph = LoweredAsCaptured(glu).graph;
  CHECK(RestsOf(graph) == "h:rest 96 Mul");
  CHECK(NamesOf(graph, NodeOf(graph, "Split").outputs) == "a b h:rest");
  CHECK(NamesOf(graph, NodeOf(graph, "Mul").inputs) == "s b h:rest");
  CHECK(NamesOf(graph, NodeOf(graph, "Mul").backward_reads) == "s b h:rest");
  // The whole (192 bytes) and the sigmoid (96) are saved, as in PyTorch; x (192) for w's gradient.
  CHECK(SavedForBackward(graph) == Bytes(192 + 96 + 192));
}

TEST_CASE("held storage: only in PyTorch's steps, of files read as captured") {
  const std::string glu = "a, b = Split<axis = 2>(h, halves) s = Sigmoid(a) y = Mul(s, b)";
  CHECK(RestsOf(LoweredAsCaptured(glu, Autograd::kTorchCuda).graph) == "h:rest 96 Mul");
  CHECK(RestsOf(LoweredAsCaptured(glu, Autograd::kMinimal).graph).empty());
  CHECK(RestsOf(
            LowerText(kHeldHead + ("{ h = MatMul(x, w) " + glu + " }"), {}, Autograd::kTorch).graph)
            .empty());
}

TEST_CASE("held storage: which parts are views, and which operations save them") {
  struct Row {
    const char* what;
    const char* body;
    const char* rests;
  };
  const Row rows[] = {
      {"both halves are saved", "a, b = Split<axis = 2>(h, halves) s = Swish(a) y = Mul(s, b)", ""},
      {"no half is saved", "a, b = Split<axis = 2>(h, halves) y = Add(a, b)", ""},
      {"the whole is saved, too",
       "a, b = Split<axis = 2>(h, halves) s = Sigmoid(a) g = Gelu(h) c, d = Split<axis = 2>(g, "
       "halves) m = Mul(s, b) y = Add(m, c)",
       ""},
      {"a part of an input of the step",
       "a, b = Split<axis = 2>(x, halves) c, d = Split<axis = 2>(h, halves) y = Mul(a, c)", ""},
      {"a selected row, which a layer saves as it is",
       "s = Gather<axis = 1>(h, first) m = MatMul(s, w) y = Unsqueeze(m, one)",
       "h:rest 128 MatMul"},
      {"rows by a list of indices are a copy", "s = Gather<axis = 1>(h, firsts) y = Gelu(s)", ""},
      {"a slice", "s = Slice(h, one, three, one) y = Gelu(s)", "h:rest 64 Gelu"},
      {"a slice backwards is a copy",
       "s = Slice(h, back, far, two, back) t = Slice(s, one, three, "
       "two) y = Gelu(t)",
       "s:rest 144 Gelu"},
      {"a slice of a transposed slice",
       "s = Slice(h, zero, four, two) t = Transpose<perm = [0,2,1]>(s) u = Slice(t, one, three, "
       "one) y = Gelu(u)",
       "h:rest 144 Gelu"},
      {"a layer copies rows that can't be merged", "s = Slice(h, one, three, one) y = MatMul(s, w)",
       ""},
      {"a layer merges rows of the first half of each",
       "s = Slice(h, zero, four, two) y = MatMul(s, v)", "h:rest 96 MatMul"},
      {"a reshape of rows that can't be merged is a copy",
       "s = Slice(h, one, three, one) r = Reshape(s, flat) g = Gelu(r) y = Unsqueeze(g, zero)", ""},
      {"a reshape within each row is a view",
       "s = Slice(h, zero, four, two) r = Unsqueeze(s, one) g = Gelu(r) y = Squeeze(g, one)",
       "h:rest 96 Gelu"},
      {"what ends in a reduction or a norm",
       "s = Slice(h, one, three, one) "
       "l = ReduceLogSumExp<keepdims = 1>(s, two) y = Mul(l, s)",
       "h:rest 64 ReduceLogSumExp Mul"},
      {"a comparison that reads the whole last can't hold it",
       "s = Slice(h, zero, four, two) g = Gelu(s) k = Sigmoid(h) b = Greater(h, h) f = Cast<to = "
       "1>(b) c = Concat<axis = 2>(g, g) n = Add(k, c) y = Add(n, f)",
       "h:rest 96 Sigmoid"},
      {"a matrix times slices of columns",
       "t = Transpose<perm = [0,2,1]>(h) p = MatMul(w, t) y = Gelu(p)", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(RestsOf(row.body) == row.rests);
  }
}

TEST_CASE(
    "held storage: if the whole is read after all parts are saved, its last reader holds the "
    "rest") {
  // The slice's Gelu comes before the sum that reads the whole last.
  const TensorGraph graph =
      LoweredAsCaptured(
          "s = Slice(h, zero, four, two) g = Gelu(s) c = Concat<axis = 2>(g, g) "
          "y = Add(h, c)")
          .graph;
  CHECK(RestsOf(graph) == "h:rest 96 Add");
  CHECK(NamesOf(graph, NodeOf(graph, "Add").outputs) == "y h:rest");
  CHECK(NamesOf(graph, NodeOf(graph, "Gelu").inputs) == "s");
}

}  // namespace
}  // namespace ckplan
