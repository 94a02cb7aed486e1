#include "lib/executor/core/fusion.h"

#include <string>

#include "lib/executor/core/testing/steps.h"

namespace ckplan {
namespace {

// Residual blocks, one of whose normalised tensors is read twice.
NetText Residual() {
  return {
      "g (float[N,4,6,7] x) => (float[N,4,6,7] y) {"
      "  a = Conv(x, w1)"
      "  b = BatchNormalization(a, s1, t1, m1, v1)"
      "  r = Relu(b)"
      "  c = Conv(r, w2)"
      "  d = BatchNormalization(c, s2, t2, m2, v2)"
      "  e = Add(d, r)"
      "  f = Relu(e)"
      "  h = Conv(f, w3)"
      "  i = BatchNormalization(h, s3, t3, m3, v3)"
      "  j = Relu(i)"
      "  k = Tanh(i)"
      "  y = Mul(j, k)"
      "}",
      {{"w1", {4, 4, 1, 1}},
       {"s1", {4}},
       {"t1", {4}},
       {"m1", {4}},
       {"v1", {4}},
       {"w2", {4, 4, 1, 1}},
       {"s2", {4}},
       {"t2", {4}},
       {"m2", {4}},
       {"v2", {4}},
       {"w3", {4, 4, 1, 1}},
       {"s3", {4}},
       {"t3", {4}},
       {"m3", {4}},
       {"v3", {4}}}};
}

// Scores and a mask, in rows that are long for a warp.
NetText WideScores() {
  return {
      "g (float[N,3,16] x) => (float[N,3,600] y) {"
      "  s = MatMul(x, w)"
      "  masked = Add(s, mask)"
      "  y = Softmax(masked)"
      "}",
      {{"w", {16, 600}}, {"mask", {3, 600}}}};
}

// Attention as exporters write it, and a layer after it.
NetText Attention() {
  return {
      "g (float[N,12,16] x) => (float[N,12,16] y) {"
      "  q = MatMul(x, wq)"
      "  k = Transpose<perm = [0,2,1]>(x)"
      "  s = MatMul(q, k)"
      "  masked = Add(s, mask)"
      "  p = Softmax(masked)"
      "  n = IsNaN(p)"
      "  zero = Constant<value = float {0.0}>()"
      "  z = Where(n, zero, p)"
      "  o = MatMul(z, x)"
      "  c = MatMul(o, wo)"
      "  biased = Add(c, bias)"
      "  ratio = Constant<value = float {0.25}>()"
      "  on = Constant<value = bool {1}>()"
      "  dropped = Dropout(biased, ratio, on)"
      "  u = Add(dropped, x)"
      "  l = MatMul(u, wl)"
      "  lb = Add(l, bl)"
      "  y = Gelu(lb)"
      "}",
      {{"wq", {16, 16}},
       {"mask", {12, 12}},
       {"wo", {16, 16}},
       {"bias", {16}},
       {"wl", {16, 16}},
       {"bl", {16}}}};
}

std::vector<std::string> TypesOf(const std::vector<Fusion>& fusions) {
  std::vector<std::string> types;
  for (const Fusion& fusion : fusions) {
    std::string text;
    for (const ChainedOp& op : fusion.ops) text += (text.empty() ? "" : "+") + op.spec->type;
    types.push_back(text);
  }
  return types;
}

std::vector<Fusion> FindOnBackend(const SmallStep& small, Backend& backend) {
  return FindFusions(small.KeepAll().program, small.step(),
                     [&](std::span<const ChainedOp> ops) { return backend.FusibleLength(ops); });
}

// Joins everything that begins with an operator of this type.
FusibleLength AllFrom(std::string type) {
  return [type = std::move(type)](std::span<const ChainedOp> ops) {
    return ops.front().spec->type == type ? ops.size() : 0;
  };
}

}  // namespace

TEST_CASE("fusion: plans with joined operators compute the same gradients in the same memory") {
  const auto backend = MakeTestBackend();
  for (const ActivationType type : StoredTypes(*backend)) {
    CAPTURE(NameOf(type));
    for (const NetText& net : {Residual(), Attention(), WideScores()}) {
      SmallStep small(*backend, net, 3, type);
      const PlacedProgram keep_all = small.KeepAll();
      for (uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        Rng rng(seed);
        const PlacedProgram plan = small.Random(rng, static_cast<int>(rng.Between(0, 100)));
        // The runs in the arena are watched, and join nothing; the others join what they can.
        const ValidationReport report = small.Validate(keep_all, plan);
        for (const Error& failure : report.failures) FAIL_CHECK(failure.message);
        CHECK(report.differences.empty());
        CHECK(report.plan.counted_peak.total == plan.predicted_peak);
        CHECK(report.plan.loss == report.keep_all.loss);
      }
    }
  }
}

TEST_CASE("fusion: the operators of residual blocks and of attention are joined on a GPU") {
  const auto backend = MakeTestBackend();
  if (backend->name() != "cuda") return;
  const SmallStep residual(*backend, Residual(), 3);
  const auto blocks = FindOnBackend(residual, *backend);
  CHECK(TypesOf(blocks) == std::vector<std::string>{"BatchNormalization+Relu",
                                                    "BatchNormalization+Add+Relu",
                                                    "BatchNormalization+Relu", "Tanh+Mul"});
  // The first two results are overwritten, the third one is read again.
  CHECK(blocks[0].calls[0].outputs[0] == kNoBuffer);
  CHECK(blocks[1].calls[0].outputs[0] == kNoBuffer);
  CHECK(blocks[1].calls[1].outputs[0] == kNoBuffer);
  CHECK(blocks[2].calls[0].outputs[0] != kNoBuffer);
  const SmallStep attention(*backend, Attention(), 3);
  CHECK(TypesOf(FindOnBackend(attention, *backend)) ==
        std::vector<std::string>{"Add+Softmax", "IsNaN+Where", "Add+Dropout+Add", "Add+Gelu"});
}

TEST_CASE("fusion: what is released before the last operator runs cannot be read by it") {
  // a ─▶ Transpose ─▶ b ─▶ Neg ─▶ c ─▶ Exp ─▶ y        and, in the second net, a ─▶ Neg after that
  const auto backend = MakeTestBackend();
  const NetText ends{
      "g (float[N,4] x) => (float[4,N] y) {"
      "  a = MatMul(x, w)"
      "  b = Transpose<perm = [1,0]>(a)"
      "  c = Neg(b)"
      "  y = Exp(c)"
      "}",
      {{"w", {4, 4}}}};
  const NetText goes_on{
      "g (float[N,4] x) => (float[4,N] y, float[N,4] z) {"
      "  a = MatMul(x, w)"
      "  b = Transpose<perm = [1,0]>(a)"
      "  c = Neg(b)"
      "  y = Exp(c)"
      "  z = Neg(a)"
      "}",
      {{"w", {4, 4}}}};
  const SmallStep ending(*backend, ends, 3);
  const auto none = FindFusions(ending.KeepAll().program, ending.step(), AllFrom("Transpose"));
  CHECK(none.empty());
  const SmallStep going(*backend, goes_on, 3);
  const auto found = FindFusions(going.KeepAll().program, going.step(), AllFrom("Transpose"));
  CHECK(TypesOf(found) == std::vector<std::string>{"Transpose+Neg+Exp"});
  // From the product on, the first net has nothing that is missing: x and w stay.
  const auto all = FindFusions(ending.KeepAll().program, ending.step(), AllFrom("MatMul"));
  CHECK(TypesOf(all) == std::vector<std::string>{"MatMul+Transpose+Neg+Exp"});
  for (size_t i = 0; i < 3; ++i) CHECK(all[0].calls[i].outputs[0] == kNoBuffer);
  CHECK(all[0].calls[3].outputs[0] != kNoBuffer);
}

TEST_CASE("fusion: a chain ends where an operator reads an earlier result of it") {
  const auto backend = MakeTestBackend();
  const NetText net{
      "g (float[N,4] x) => (float[N,4] y) {"
      "  a = MatMul(x, w)"
      "  b = Neg(a)"
      "  c = Neg(b)"
      "  y = Mul(b, c)"
      "}",
      {{"w", {4, 4}}}};
  const SmallStep small(*backend, net, 3);
  const auto found = FindFusions(small.KeepAll().program, small.step(), AllFrom("MatMul"));
  CHECK(TypesOf(found) == std::vector<std::string>{"MatMul+Neg+Neg"});
  // Mul reads both b and c, so both are written; a is not.
  CHECK(found[0].calls[0].outputs[0] == kNoBuffer);
  CHECK(found[0].calls[1].outputs[0] != kNoBuffer);
  CHECK(found[0].calls[2].outputs[0] != kNoBuffer);
}

}  // namespace ckplan
