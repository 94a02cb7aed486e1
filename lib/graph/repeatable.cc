#include "lib/graph/repeatable.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

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
    "_efficient_attention_forward",
    // Random numbers.
    "bernoulli", "dropout", "native_dropout", "rrelu_with_noise", "multinomial", "poisson",
    "normal", "normal_functional", "uniform", "exponential", "geometric", "rand", "randn",
    "rand_like", "randn_like", "randint", "randint_like", "randperm", "randomnormal",
    "randomuniform", "randomnormallike", "randomuniformlike"};

std::string SmallLetters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return small;
}

bool BeginsWithLibrary(std::string_view type, std::string_view library) {
  return type.size() > library.size() && type.starts_with(library) &&
         (type[library.size()] == '.' || type[library.size()] == ':');
}

}  // namespace

bool MayRepeatByType(std::string_view type) {
  const auto is_of = [&](std::string_view library) { return BeginsWithLibrary(type, library); };
  if (std::any_of(kCommunication.begin(), kCommunication.end(), is_of)) return false;
  for (const std::string_view library : kLibraries) {
    if (!is_of(library)) continue;
    type.remove_prefix(library.size());
    type.remove_prefix(std::min(type.find_first_not_of(".:"), type.size()));
    break;
  }
  const std::string name = SmallLetters(type.substr(0, type.find('.')));
  return std::find(std::begin(kSingleRuns), std::end(kSingleRuns), name) == std::end(kSingleRuns);
}

}  // namespace ckplan
