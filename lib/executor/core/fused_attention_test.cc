// Compares networks whose attention is one operator with the same networks, operator by operator.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "lib/executor/core/testing/steps.h"

namespace ckplan {
namespace {

constexpr int64_t kBatch = 3;

// What is added to the scores of the keys that are 3 or more places away. A constant with two wide
// axes is a mask, and no parameter.
std::string FarKeys() {
  std::string text = "{";
  for (int i = 0; i < 64; ++i) {
    text += i == 0 ? "" : ",";
    text += std::abs(i / 8 - i % 8) >= 3 ? "-2" : "0";
  }
  return text + "}";
}

// Queries, keys and values of two heads, as exporters write them. `scores` makes "s" of the product
// "r" of queries and keys, and `output` makes "o" of the probabilities "p". A library may take
// heads of 8 elements.
NetText AttentionNet(const std::string& scores, const std::string& output, int64_t size = 6) {
  const int64_t width = 2 * size;
  const std::string rows = "float[N,8," + std::to_string(width) + "]";
  return {"g (" + rows + " x, bool[N,1,1,8] seen) => (" + rows +
              " y) "
              "<float[1,1,8,8] far = " +
              FarKeys() +
              ", float val_1 = {0.5}, float val_2 = {0.8}, float zero_const = {0}, float low_const "
              "= {-inf}, "
              "int64[4] split = {0, 8, 2, " +
              std::to_string(size) + "}, int64[3] joined = {0, 8, " + std::to_string(width) +
              "}> { "
              "q0 = MatMul(x, w) q1 = Reshape(q0, split) q2 = Transpose<perm = [0,2,1,3]>(q1) "
              "k0 = MatMul(x, wk) k1 = Reshape(k0, split) k2 = Transpose<perm = [0,2,3,1]>(k1) "
              "v0 = MatMul(x, wv) v1 = Reshape(v0, split) v = Transpose<perm = [0,2,1,3]>(v1) "
              "q = Mul(q2, val_1) k = Mul(k2, val_2) r = MatMul(q, k) " +
              scores + " p = Softmax(s) " + output +
              " t = Transpose<perm = [0,2,1,3]>(h) j = Reshape(t, joined) y = MatMul(j, wo) }",
          {{"w", {width, width}},
           {"wk", {width, width}},
           {"wv", {width, width}},
           {"wo", {width, width}},
           {"bias", {2, 8, 8}}}};
}

using GradientsByName = std::map<std::string, std::vector<float>>;

GradientsByName GradientsOf(const NetText& net, ActivationType type, FusedOperators fused,
                            double* loss) {
  const auto backend = MakeTestBackend();
  SmallStep small(*backend, net, kBatch, type, fused);
  int64_t attentions = 0;
  for (const StepNode& node : small.step().nodes) {
    attentions += node.spec.type == "FusedAttention" ? 1 : 0;
    if (fused == FusedOperators::kAttention) CHECK(node.spec.type != "Transpose");
  }
  CHECK(attentions == (fused == FusedOperators::kAttention ? 1 : 0));
  *loss = small.Run(small.KeepAll(), LossKind::kGiven);
  GradientsByName gradients;
  for (const ConstantId leaf : small.constants().trained()) {
    gradients[small.step().constants[leaf].name] = small.constants().DownloadGradient(leaf);
  }
  return gradients;
}

void CheckSame(const NetText& net, ActivationType type) {
  double apart_loss = 0, fused_loss = 0;
  const GradientsByName apart = GradientsOf(net, type, FusedOperators::kNone, &apart_loss);
  const GradientsByName fused = GradientsOf(net, type, FusedOperators::kAttention, &fused_loss);
  const double tolerance = type == ActivationType::kBFloat16 ? 0.03 : 1e-5;
  CHECK(fused_loss == doctest::Approx(apart_loss).epsilon(tolerance));
  REQUIRE(fused.size() == apart.size());
  for (const auto& gradient : apart) {
    CAPTURE(gradient.first);
    const std::vector<float>& expected = gradient.second;
    REQUIRE(fused.count(gradient.first) == 1);
    const std::vector<float>& found = fused.at(gradient.first);
    REQUIRE(found.size() == expected.size());
    double most = 0, difference = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      most = std::max(most, std::fabs(static_cast<double>(expected[i])));
      difference = std::max(difference, std::fabs(static_cast<double>(found[i] - expected[i])));
    }
    CHECK(most > 0);
    CHECK(difference <= tolerance * most);
  }
}

struct AttentionRow {
  std::string name, scores, output;
};

const AttentionRow kForms[] = {
    {"no mask", "s = Identity(r)", "h = MatMul(p, v)"},
    {"a scale of the scores, a bias with a gradient", "t0 = Mul(r, val_2) s = Add(t0, bias)",
     "h = MatMul(p, v)"},
    {"a boolean mask that Where chooses by", "s = Where(seen, r, low_const)",
     "n = IsNaN(p) o = Where(n, zero_const, p) h = MatMul(o, v)"},
    {"a mask that Where makes of booleans, and a bias",
     "m = Where(seen, zero_const, low_const) t0 = Add(r, bias) s = Add(t0, m)",
     "n = IsNaN(p) o = Where(n, zero_const, p) h = MatMul(o, v)"},
    {"a mask of numbers", "s = Add(r, far)", "h = MatMul(p, v)"},
    {"a mask of numbers and a bias", "t0 = Add(r, far) s = Add(t0, bias)", "h = MatMul(p, v)"},
};

TEST_CASE("fused attention: losses and gradients are those of the operators apart") {
  ForEachType([](ActivationType type) {
    for (const AttentionRow& row : kForms) {
      CAPTURE(row.name);
      for (const int64_t size : {6, 8}) {
        CAPTURE(size);
        CheckSame(AttentionNet(row.scores, row.output, size), type);
      }
    }
  });
}

TEST_CASE("fused attention: plans that compute it again are proven") {
  ForEachType([](ActivationType type) {
    const auto backend = MakeTestBackend();
    const NetText nets[] = {AttentionNet(kForms[3].scores, kForms[3].output),
                            AttentionNet(kForms[2].scores, kForms[2].output, 8)};
    for (const NetText& net : nets) {
      SmallStep small(*backend, net, kBatch, type, FusedOperators::kAttention);
      const PlacedProgram keep_all = small.KeepAll();
      Rng rng(11);
      for (const int percent : {0, 50}) {
        CHECK(small.Validate(keep_all, small.Random(rng, percent)).failures.empty());
      }
    }
  });
}

}  // namespace
}  // namespace ckplan
