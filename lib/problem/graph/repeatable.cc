#include "lib/problem/graph/repeatable.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "lib/base/lower_case.h"

namespace ckplan {
namespace {

constexpr std::array<std::string_view, 5> kLibraries = {"aten", "prims", "torch", "onnx",
                                                        "ai.onnx"};

constexpr std::array<std::string_view, 5> kCommunication = {
    "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "c10d", "_dtensor"};

// In lower case.
constexpr std::string_view kSingleRuns[] = {
    // Routers and searches.
    "topk", "sort", "argsort", "argmax", "argmin", "nonzero", "unique", "_unique2", "kthvalue",
    // Attention that saves statistics and the state of its dropout.
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable", "_flash_attention_forward",
    "_efficient_attention_forward"};

// In lower case.
constexpr std::string_view kRandom[] = {"bernoulli",
                                        "dropout",
                                        "native_dropout",
                                        "rrelu_with_noise",
                                        "multinomial",
                                        "poisson",
                                        "normal",
                                        "normal_functional",
                                        "uniform",
                                        "exponential",
                                        "geometric",
                                        "rand",
                                        "randn",
                                        "rand_like",
                                        "randn_like",
                                        "randint",
                                        "randint_like",
                                        "randperm",
                                        "randomnormal",
                                        "randomuniform",
                                        "randomnormallike",
                                        "randomuniformlike"};

bool BeginsWithLibrary(std::string_view type, std::string_view library) {
  return type.size() > library.size() && type.starts_with(library) &&
         (type[library.size()] == '.' || type[library.size()] == ':');
}

// Returns the type without its library and its overload, in lower case.
std::string PlainName(std::string_view type) {
  for (const std::string_view library : kLibraries) {
    if (!BeginsWithLibrary(type, library)) continue;
    type.remove_prefix(library.size());
    type.remove_prefix(std::min(type.find_first_not_of(".:"), type.size()));
    break;
  }
  return LowerCase(type.substr(0, type.find('.')));
}

bool IsCommunication(std::string_view type) {
  return std::any_of(kCommunication.begin(), kCommunication.end(),
                     [&](std::string_view library) { return BeginsWithLibrary(type, library); });
}

}  // namespace

bool MayRepeatByType(std::string_view type) {
  if (IsCommunication(type) || IsRandomByType(type)) return false;
  return std::find(std::begin(kSingleRuns), std::end(kSingleRuns), PlainName(type)) ==
         std::end(kSingleRuns);
}

bool IsRandomByType(std::string_view type) {
  return std::find(std::begin(kRandom), std::end(kRandom), PlainName(type)) != std::end(kRandom);
}

}  // namespace ckplan
