// Tests folding one operator at a time: the result must equal what the operator computes.
#include "lib/files/model/fold.h"

#include <doctest/doctest.h>

#include "lib/files/model/testing/proto.h"

namespace ckplan {
namespace {

// Evaluates one node whose inputs are initializers given as text.
std::optional<std::vector<ConstantValue>> Fold(const std::string& initializers,
                                               const std::string& node) {
  const onnx::ModelProto proto =
      ParseGraph("g (float[1] x) => (float[1] y) <" + initializers + "> { " + node + " }");
  std::vector<ConstantValue> values;
  std::vector<std::string> names;
  for (const auto& tensor : proto.graph().initializer()) {
    names.push_back(tensor.name());
    values.push_back(ReadTensor(tensor).value());
  }
  std::vector<FoldInput> inputs;
  for (const std::string& name : proto.graph().node(0).input()) {
    FoldInput input;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) input = {&values[i], &values[i].dims, values[i].elem_type};
    }
    inputs.push_back(input);
  }
  return FoldNode(proto.graph().node(0), inputs);
}

struct FoldRow {
  const char* initializers;
  const char* node;
  Dims dims;
  std::vector<int64_t> ints;
};

TEST_CASE("fold: integer results are as the operator defines them") {
  const FoldRow rows[] = {
      {"int64[2,3] a = {0,1,2,3,4,5}", "y = Shape(a)", {2}, {2, 3}},
      {"int64[2,3] a = {0,1,2,3,4,5}", "y = Shape<start = -1>(a)", {1}, {3}},
      {"int64[2,3] a = {0,1,2,3,4,5}", "y = Size(a)", {}, {6}},
      {"int64[2,3] a = {0,1,2,3,4,5}", "y = Transpose(a)", {3, 2}, {0, 3, 1, 4, 2, 5}},
      {"int64[2,3] a = {0,1,2,3,4,5}, int64[2] i = {-1,0}",
       "y = Gather<axis = 1>(a, i)",
       {2, 2},
       {2, 0, 5, 3}},
      {"int64[3] a = {5,6,7}, int64 i = {-2}", "y = Gather(a, i)", {}, {6}},
      {"int64[2] a = {1,2}, int64[1] b = {3}", "y = Concat<axis = 0>(a, b)", {3}, {1, 2, 3}},
      {"int64[2,1] a = {1,2}, int64[2,2] b = {3,4,5,6}",
       "y = Concat<axis = -1>(a, b)",
       {2, 3},
       {1, 3, 4, 2, 5, 6}},
      {"int64[2,1] a = {1,2}, int64[2] s = {2,3}", "y = Expand(a, s)", {2, 3}, {1, 1, 1, 2, 2, 2}},
      {"int64[2] a = {1,2}, int64[1] r = {2}", "y = Tile(a, r)", {4}, {1, 2, 1, 2}},
      {"int64[2,3] a = {0,1,2,3,4,5}, int64[2] s = {0,-1}",
       "y = Reshape(a, s)",
       {2, 3},
       {0, 1, 2, 3, 4, 5}},
      {"int64[1,2,1] a = {1,2}", "y = Squeeze(a)", {2}, {1, 2}},
      {"int64[1,2,1] a = {1,2}, int64[1] x = {-1}", "y = Squeeze(a, x)", {1, 2}, {1, 2}},
      {"int64[2] a = {1,2}, int64[2] x = {0,-1}", "y = Unsqueeze(a, x)", {1, 2, 1}, {1, 2}},
      {"int64[2] a = {7,-7}, int64 b = {2}", "y = Div(a, b)", {2}, {3, -3}},
      {"int64[2] a = {7,-7}, int64 b = {3}", "y = Mod(a, b)", {2}, {1, 2}},
      {"int64 a = {3}, int64 b = {4}", "y = Pow(a, b)", {}, {81}},
      {"bool[2] c = {1,0}, int64[2] a = {1,2}, int64 b = {9}", "y = Where(c, a, b)", {2}, {1, 9}},
      {"int64[3] a = {1,2,3}, int64 b = {2}", "y = GreaterOrEqual(a, b)", {3}, {0, 1, 1}},
      {"float[3] a = {1.9,-1.9,0.0}", "y = Cast<to = 7>(a)", {3}, {1, -1, 0}},
      {"int64[2] a = {300,-1}", "y = Cast<to = 2>(a)", {2}, {44, 255}},
      {"float[2] a = {0.5,0.0}", "y = Cast<to = 9>(a)", {2}, {1, 0}},
      {"int64[4] a = {2,3,4,5}", "y = ReduceProd<keepdims = 1>(a)", {1}, {120}},
      {"int64[3] a = {2,9,4}", "y = ReduceMax<keepdims = 0>(a)", {}, {9}},
      {"int64[2,3] a = {2,9,4,1,5,6}, int64[1] x = {-1}",
       "y = ReduceMin<keepdims = 0>(a, x)",
       {2},
       {2, 1}},
      {"int64[2,3] a = {2,9,4,1,5,6}, int64[1] x = {0}",
       "y = ReduceSum(a, x)",
       {1, 3},
       {3, 14, 10}},
      {"int64[2] a = {2,9}", "y = ReduceSum<noop_with_empty_axes = 1>(a)", {2}, {2, 9}},
      {"int64[2] a = {2,9}, int64 b = {3}, int64 c = {4}", "y = Sum(a, b, c)", {2}, {9, 16}},
      {"int64[2,2] a = {1,0,0,1}", "y = NonZero(a)", {2, 2}, {0, 1, 0, 1}},
      {"int64 a = {5}, int64 b = {-1}, int64 c = {-2}", "y = Range(a, b, c)", {3}, {5, 3, 1}},
      {"int64[1] s = {3}", "y = ConstantOfShape<value = int64[1] {7}>(s)", {3}, {7, 7, 7}},
  };
  for (const FoldRow& row : rows) {
    CAPTURE(row.node);
    const auto folded = Fold(row.initializers, row.node);
    REQUIRE(folded.has_value());
    REQUIRE(folded->size() == 1);
    CHECK(folded->at(0).dims == row.dims);
    CHECK(folded->at(0).ints == row.ints);
  }
}

TEST_CASE("fold: slices clamp, step backwards, and take the largest integer for the end") {
  const FoldRow rows[] = {
      {"int64[1] b = {1}, int64[1] e = {9223372036854775807}",
       "y = Slice(a, b, e)",
       {4},
       {1, 2, 3, 4}},
      {"int64[1] b = {-2}, int64[1] e = {100}", "y = Slice(a, b, e)", {2}, {3, 4}},
      {"int64[1] b = {-100}, int64[1] e = {2}", "y = Slice(a, b, e)", {2}, {0, 1}},
      {"int64[1] b = {4}, int64[1] e = {1}", "y = Slice(a, b, e)", {0}, {}},
      {"int64[1] b = {-1}, int64[1] e = {-9223372036854775808}, int64[1] x = {0}, int64[1] s = "
       "{-2}",
       "y = Slice(a, b, e, x, s)",
       {3},
       {4, 2, 0}},
      {"int64[1] b = {0}, int64[1] e = {5}, int64[1] x = {0}, int64[1] s = {9223372036854775807}",
       "y = Slice(a, b, e, x, s)",
       {1},
       {0}},
      {"int64[1] b = {4}, int64[1] e = {-9223372036854775808}, int64[1] x = {0}, int64[1] s = "
       "{-9223372036854775808}",
       "y = Slice(a, b, e, x, s)",
       {1},
       {4}},
  };
  for (const FoldRow& row : rows) {
    CAPTURE(row.initializers);
    const auto folded =
        Fold("int64[5] a = {0,1,2,3,4}, " + std::string(row.initializers), row.node);
    REQUIRE(folded.has_value());
    CHECK(folded->at(0).dims == row.dims);
    CHECK(folded->at(0).ints == row.ints);
  }
}

TEST_CASE("fold: a split yields its parts, uneven ones too") {
  const auto equal =
      Fold("int64[2,3] a = {0,1,2,3,4,5}", "y, z = Split<axis = 1, num_outputs = 2>(a)");
  REQUIRE(equal.has_value());
  CHECK(equal->at(0).ints == std::vector<int64_t>{0, 1, 3, 4});
  CHECK(equal->at(1).ints == std::vector<int64_t>{2, 5});
  const auto given = Fold("int64[5] a = {0,1,2,3,4}, int64[2] s = {1,4}", "y, z = Split(a, s)");
  REQUIRE(given.has_value());
  CHECK(given->at(1).ints == std::vector<int64_t>{1, 2, 3, 4});
}

TEST_CASE("fold: floats are rounded to their type, and halves to even") {
  const auto product = Fold("float[2] a = {0.1,3.0}, float b = {0.2}", "y = Mul(a, b)");
  REQUIRE(product.has_value());
  CHECK(product->at(0).reals[0] == static_cast<double>(0.1F * 0.2F));
  const auto rounded = Fold("float[3] a = {0.5,1.5,-2.5}", "y = Round(a)");
  REQUIRE(rounded.has_value());
  CHECK(rounded->at(0).reals == std::vector<double>{0, 2, -2});
}

// torchvision's detectors compute the size of a padded image with a maximum of floats.
TEST_CASE("fold: floats are reduced") {
  const auto reduce = [](const std::string& op) {
    const auto folded = Fold("float[2,2] a = {1.5,-2,4,0.5}, int64[1] x = {1}",
                             "y = " + op + "<keepdims = 0>(a, x)");
    REQUIRE(folded.has_value());
    CHECK(folded->at(0).dims == Dims{2});
    return folded->at(0).reals;
  };
  CHECK(reduce("ReduceMax") == std::vector<double>{1.5, 4});
  CHECK(reduce("ReduceMin") == std::vector<double>{-2, 0.5});
  CHECK(reduce("ReduceSum") == std::vector<double>{-0.5, 4.5});
  CHECK(reduce("ReduceProd") == std::vector<double>{-3, 2});
}

TEST_CASE("fold: operations that would overflow, divide by zero or grow large are not folded") {
  CHECK_FALSE(Fold("int64 a = {9223372036854775807}, int64 b = {2}", "y = Mul(a, b)").has_value());
  CHECK_FALSE(Fold("int64 a = {9223372036854775807}, int64 b = {1}", "y = Add(a, b)").has_value());
  CHECK_FALSE(Fold("int64 a = {1}, int64 b = {0}", "y = Div(a, b)").has_value());
  CHECK_FALSE(Fold("int64 a = {1}, int64 b = {0}", "y = Mod(a, b)").has_value());
  CHECK_FALSE(Fold("int64[2] s = {3000000,3000000}", "y = ConstantOfShape(s)").has_value());
  CHECK_FALSE(
      Fold("int64 a = {0}, int64 b = {1000000}, int64 c = {1}", "y = Range(a, b, c)").has_value());
  CHECK_FALSE(Fold("int64 a = {0}, int64[2] s = {100,100}", "y = Expand(a, s)").has_value());
  CHECK_FALSE(Fold("int64[2] a = {0,1}, int64 i = {2}", "y = Gather(a, i)").has_value());
  CHECK_FALSE(Fold("float a = {1e30}", "y = Cast<to = 7>(a)").has_value());
}

// Dimensions of an empty tensor can multiply to more than 64 bits hold.
TEST_CASE("fold: tensors without elements may have dimensions of any size") {
  const std::string huge = "4611686018427387904";
  const std::string empty = "int64[0," + huge + ",5] a = {}";
  CHECK(Fold(empty, "y = Equal(a, a)").has_value());
  const auto parts = Fold(empty, "y, z, u, v, w = Split<axis = 2>(a)");
  REQUIRE(parts.has_value());
  CHECK(parts->at(4).dims == Dims{0, int64_t{1} << 62, 1});
  CHECK_FALSE(Fold(empty, "y = Concat<axis = 1>(a, a, a)").has_value());
}

}  // namespace
}  // namespace ckplan
