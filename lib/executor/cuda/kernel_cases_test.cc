// Cases for kernels that the cases of the operators do not start. A kernel has versions for short
// and long rows, for few results and many, and for each type of elements; which one is started
// depends on shapes alone, which other backends treat alike.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/executor/cuda/testing/test_backend.h"
#include "lib/executor/testing/check_bfloat16.h"
#include "lib/executor/testing/check_op.h"
#include "lib/executor/testing/check_run.h"

namespace ckplan::cuda {
namespace {

constexpr uint64_t kCaseSeed = 20251126;

// A case, with texts of its own.
struct KernelCase {
  std::string type, operands, attributes;
  double tolerance = 1e-5;
};

using KernelCheck = std::vector<std::string> (&)(Backend& backend, const reference::CaseRow& row,
                                                 uint64_t seed);

void CheckKernelsBy(KernelCheck check, const std::vector<KernelCase>& cases,
                    const DeviceOptions& options = {}) {
  reference::ReusingBackend backend(MakeTestBackend(options));
  for (const KernelCase& each : cases) {
    const reference::CaseRow row{each.type, each.operands, each.attributes, each.tolerance};
    std::string message;
    for (const std::string& fault : check(backend, row, kCaseSeed)) message += fault + "\n";
    CHECK_MESSAGE(message.empty(), message);
  }
}

void CheckKernels(const std::vector<KernelCase>& cases, const DeviceOptions& options = {}) {
  CheckKernelsBy(reference::CheckOp, cases, options);
}

// Numbers of elements in a row that a warp, a block and a large block reduce (TeamSize).
constexpr int64_t kLengths[] = {40, 600, 2000, 17000};

// ---- Reductions ---------------------------------------------------------------------------------

void AddReductions(const std::string& type, std::vector<KernelCase>& to) {
  // One thread for a result, teams of a warp and of a block for many rows, and blocks for a part.
  to.push_back({type, "f7x5 i1=[1] -> f7x1", ""});
  to.push_back({type, "f1030x20 i1=[1] -> f1030x1", "", 1e-4});
  to.push_back({type, "f1030x520 i1=[1] -> f1030x1", "", 1e-3});
  to.push_back({type, "f9001 -> f1", "", 1e-3});
}

TEST_CASE("cuda kernels: reductions, for few and many results") {
  std::vector<KernelCase> cases;
  for (const char* type : {"ReduceSum", "ReduceMean"}) AddReductions(type, cases);
  CheckKernels(cases);
}

// ---- Broadcasting -------------------------------------------------------------------------------

TEST_CASE("cuda kernels: gradients of operands that are broadcast along rows and along columns") {
  struct Row {
    std::string_view type, first, second, attributes;
  };
  const Row rows[] = {{"Add", "", "", ""},         {"Sub", "", "", ""},
                      {"Mul", "", "", ""},         {"Div", "", "(0.5..2)", ""},
                      {"Pow", "(0.5..2)", "", ""}, {"Mod", "(2.2..2.6)", "(0.9..1)", "fmod=1"}};
  std::vector<KernelCase> cases;
  for (const Row& row : rows) {
    const auto add = [&](std::string_view first, std::string_view second, std::string_view result) {
      cases.push_back(
          {std::string(row.type),
           fmt::format("f{}{} f{}{} -> f{}", first, row.first, second, row.second, result),
           std::string(row.attributes), 1e-3});
    };
    for (const int64_t length : {40, 600}) {
      const std::string whole = fmt::format("3x{}", length);
      add(whole, "3x1", whole);
      add("3x1", whole, whole);
    }
    add("7x40", "40", "7x40");
    add("40", "7x40", "7x40");
    add("9001", "1", "9001");
    add("1", "9001", "9001");
  }
  // PRelu takes a slope of the shape of x, or one that is broadcast to it.
  for (const int64_t length : {40, 600, 9001}) {
    cases.push_back({"PRelu", fmt::format("f3x{0} f3x1 -> f3x{0}", length), "", 1e-3});
  }
  cases.push_back({"PRelu", "f7x40 f40 -> f7x40", ""});
  CheckKernels(cases);
}

TEST_CASE("cuda kernels: Where, with branches that are broadcast") {
  std::vector<KernelCase> cases;
  for (const int64_t length : {40, 600, 9001}) {
    cases.push_back({"Where", fmt::format("b2x{0} f2x1 f2x{0} -> f2x{0}", length), "", 1e-3});
    cases.push_back({"Where", fmt::format("b2x{0} f2x{0} f2x1 -> f2x{0}", length), "", 1e-3});
  }
  cases.push_back({"Where", "b2x3 n2x3(0..9) ns(0..9) -> n2x3", ""});
  CheckKernels(cases);
}

// ---- Types of elements --------------------------------------------------------------------------

TEST_CASE("cuda kernels: operators of integers of both sizes and of booleans") {
  std::vector<KernelCase> cases;
  for (const char* letter : {"i", "n"}) {
    const auto two = [&](const char* type, const char* result, const char* attributes = "") {
      cases.push_back(
          {type, fmt::format("{0}7(-9..9) {0}7(1..4) -> {1}7", letter, result), attributes});
    };
    for (const char* type : {"Add", "Sub", "Mul", "Div", "Mod", "Max", "Min"}) {
      two(type, letter);
    }
    two("Mod", letter, "fmod=1");
    two("Pow", letter);
    for (const char* type : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"}) {
      two(type, "b");
    }
    const auto one = [&](const char* type, const char* result, const char* attributes = "") {
      cases.push_back({type, fmt::format("{}9(-3..3) -> {}9", letter, result), attributes});
    };
    one("Relu", letter);
    one("Sign", letter);
    one("Abs", letter);
    one("Neg", letter);
    one("Cast", "b", "to=9");
    one("Cast", "i", "to=7");
    one("Cast", "n", "to=6");
    one("Cast", "f", "to=1");
    cases.push_back({"Clip", fmt::format("{0}9(-9..9) {0}s=[-2] {0}s=[3] -> {0}9", letter), ""});
    cases.push_back({"CumSum", fmt::format("{0}2x150(-9..9) is=[1] -> {0}2x150", letter), ""});
    cases.push_back({"CumSum", fmt::format("{0}2x5(-9..9) is=[1] -> {0}2x5", letter), ""});
  }
  cases.push_back({"Cast", "b9 -> b9", "to=9"});
  cases.push_back({"IsInf", "f4@[-inf,nan,1,inf] -> b4", "detect_negative=0 detect_positive=0"});
  cases.push_back({"Transpose", "b40x50 -> b50x40", "perm=[1,0]"});
  cases.push_back({"Transpose", "b3x130x70 -> b3x70x130", "perm=[0,2,1]"});
  cases.push_back({"Pow", "f9(0.2..2) fs=[1.5] -> f9", "", 1e-4});
  CheckKernels(cases);
}

TEST_CASE("cuda kernels: gradients of a row that many indices name") {
  CheckKernels({{"Gather", "f3x4 i150(1..1) -> f150x4", "axis=0", 1e-4},
                {"Gather", "f3x3 i150(1..1) -> f150x3", "axis=0", 1e-4}});
}

// ---- Lines and planes ---------------------------------------------------------------------------

TEST_CASE("cuda kernels: lines of all lengths, also side by side") {
  std::vector<KernelCase> cases;
  for (const char* operands : {"3x5x9", "2x600", "2x2000", "2x17000"}) {
    const std::string_view text(operands);
    const bool is_side_by_side = text == "3x5x9";
    const char* const axis = is_side_by_side ? "axis=1" : "axis=-1";
    for (const char* type : {"Softmax", "LogSoftmax"}) {
      cases.push_back({type, fmt::format("f{0} -> f{0}", operands), axis, 1e-4});
    }
  }
  CheckKernels(cases);
}

TEST_CASE("cuda kernels: planes and rows of all lengths") {
  std::vector<KernelCase> cases;
  for (const int64_t length : kLengths) {
    for (const char* type : {"GlobalAveragePool", "GlobalMaxPool"}) {
      cases.push_back({type, fmt::format("f2x3x{} -> f2x3x1", length), "", 1e-3});
    }
    cases.push_back(
        {"LayerNormalization", fmt::format("f3x{0} f{0}! f{0}! -> f3x{0}", length), "", 1e-3});
    cases.push_back(
        {"RMSNormalization@23", fmt::format("f3x{0} f{0}! -> f3x{0}", length), "", 1e-3});
  }
  CheckKernels(cases);
}

// ---- Attention ----------------------------------------------------------------------------------

// In bfloat16 a library computes these, and kernels of our own prepare the bias.
TEST_CASE("cuda kernels: masks, biases and rows without keys of attention by a library") {
  const std::string counts = "batch=2 heads=3 key_heads=3 queries=5 keys=6 size=8 value_size=16 ";
  const std::string rows = "f2x3x5x8 f2x3x6x8 f2x3x6x16 ";
  CheckKernelsBy(
      reference::CheckBFloat16,
      {
          {"FusedAttention", rows + "-> f2x3x5x16", counts + "scale=0.5"},
          {"FusedAttention", rows + "b2x1x5x6 -> f2x3x5x16", counts + "mask_dims=[2,1,5,6]"},
          {"FusedAttention", rows + "b5x1* -> f2x3x5x16",
           counts + "mask_dims=[1,1,5,1] mask_hides=1"},
          {"FusedAttention", rows + "f2x1x1x6~ -> f2x3x5x16",
           counts + "mask_dims=[2,1,1,6] scale=0.3"},
          {"FusedAttention", rows + "_ f3x5x6* -> f2x3x5x16", counts + "bias_dims=[1,3,5,6]"},
          {"FusedAttention",
           "f1x2x3x8 f1x2x4x8 f1x2x4x8 b3x4@[1,1,0,0,0,0,0,0,1,1,1,1] -> f1x2x3x8",
           "batch=1 heads=2 key_heads=2 queries=3 keys=4 size=8 value_size=8 mask_dims=[1,1,3,4]"},
          {"FusedAttention", "f5x2x24 f5x2x24 f2x3x5x16 -> f2x5x48",
           "batch=2 heads=3 key_heads=3 queries=5 keys=5 size=8 value_size=16 q_axes='sbhd' "
           "k_axes='sbhd' y_axes='bshd' is_causal=1 scale=0.5"},
      });
}

TEST_CASE("cuda kernels: maps along more than four axes") {
  for (const char* mode : {"linear", "nearest"}) {
    CheckKernels({{"Resize", "f2x2x2x2x2 _ _ i5=[3,3,3,3,3] -> f3x3x3x3x3",
                   fmt::format("mode='{}'", mode)}});
  }
}

// ---- Channels last ------------------------------------------------------------------------------

TEST_CASE("cuda kernels: channels that lie last, in blocks of eight and beside them") {
  // Tables of rows of channels have one order either way.
  CheckKernels({{"BatchNormalization", "f40x16 f16! f16! f16* f16* -> f40x16", ""},
                {"BatchNormalization", "f9x24 f24! f24! f24* f24* -> f9x24", ""}});
  const KernelCase cases[] = {
      {"Conv", "f2x8x5x5 f16x8x3x3 f16 -> f2x16x5x5", "pads=[1,1,1,1] kernel_shape=[3,3]"},
      {"Conv", "f2x3x5x5 f16x3x1x1 f16 -> f2x16x5x5", "kernel_shape=[1,1]"},
      {"ConvTranspose", "f2x8x4x4 f8x8x2x2 f8 -> f2x8x5x5", "kernel_shape=[2,2]"},
      {"BatchNormalization", "f3x16x5x4 f16! f16! f16* f16* -> f3x16x5x4", ""},
      {"BatchNormalization", "f3x5x5x4 f5! f5! f5* f5* -> f3x5x5x4", ""},
      {"MaxPool", "f2x8x6x6 -> f2x8x3x3", "kernel_shape=[2,2] strides=[2,2]"},
      {"AveragePool", "f2x8x6x6 -> f2x8x3x3", "kernel_shape=[2,2] strides=[2,2]"},
      {"GlobalAveragePool", "f1x8x40x40 -> f1x8x1x1", ""},
      {"Add", "f2x8x3x4 f8x1x1 -> f2x8x3x4", ""},
      {"Concat", "f2x8x3x4 f2x3x3x4 -> f2x11x3x4", "axis=1"},
      {"Slice", "f2x8x6x6 i2=[1,2] i2=[4,5] i2=[2,-1] -> f2x8x3x3", ""},
  };
  const auto backend = MakeTestBackend();
  for (const KernelCase& each : cases) {
    const reference::CaseRow row{each.type, each.operands, each.attributes, each.tolerance};
    std::string message;
    for (const std::string& fault : reference::CheckChannelsLast(*backend, row, kCaseSeed)) {
      message += fault + "\n";
    }
    CHECK_MESSAGE(message.empty(), message);
  }
}

// ---- Few blocks ---------------------------------------------------------------------------------

// Each thread has its work in several rounds, as where there is more than 2^20 blocks' worth of it.
TEST_CASE("cuda kernels: results are the same by three blocks as by many") {
  DeviceOptions options;
  options.max_blocks = 3;
  CheckKernels(
      {
          {"Relu", "f9001 -> f9001", ""},
          {"Softmax", "f70x40 -> f70x40", "axis=-1", 1e-4},
          {"Softmax", "f9x600 -> f9x600", "axis=-1", 1e-4},
          {"Softmax", "f5x17000 -> f5x17000", "axis=-1", 1e-4},
          {"ReduceSum", "f9001 -> f1", "", 1e-3},
          {"ReduceSum", "f20x300 i1=[0] -> f1x300", "", 1e-3},
          {"Transpose", "f130x70 -> f70x130", "perm=[1,0]"},
          {"BatchNormalization", "f2x40x30 f40! f40! f40* f40* -> f2x40x30", "", 1e-4},
          {"LayerNormalization", "f300x40 f40! f40! -> f300x40", "", 1e-3},
          {"Gather", "f30x40 i200(0..29) -> f200x40", "axis=0", 1e-4},
      },
      options);
}

// ---- Sums over many elements --------------------------------------------------------------------

TEST_CASE("cuda kernels: gradients of parameters that many elements share") {
  CheckKernels({
      {"LayerNormalization", "f5000x3 f3! f3! -> f5000x3", "", 1e-3},
      {"RMSNormalization@23", "f5000x3 f3! -> f5000x3", "", 1e-3},
      {"Gemm", "f2100x2 f2x3 f3 -> f2100x3", "", 1e-3},
      {"Gemm", "f2x3 f3x5000 f2x1 -> f2x5000", "", 1e-3},
      {"Conv", "f2x1x71x71 f1x1x1x1 f1 -> f2x1x71x71", "kernel_shape=[1,1]", 1e-3},
      {"BatchNormalization", "f2x2x3 f2! f2! f2* f2* -> f2x2x3", "", 1e-3},
  });
}

}  // namespace
}  // namespace ckplan::cuda
