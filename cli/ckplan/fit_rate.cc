#include "cli/ckplan/fit_rate.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "cli/ckplan/plan_summary.h"
#include "lib/base/text.h"

namespace ckplan {
namespace {

constexpr double kNanoseconds = 1e9;  // Nanoseconds per second.

constexpr std::array<std::string_view, 6> kBatchNames = {"n",          "b",         "batch",
                                                         "batch_size", "batchsize", "bs"};
constexpr std::array<std::string_view, 9> kSequenceNames = {
    "l", "s", "t", "seq", "seq_len", "seqlen", "seq_length", "sequence", "sequence_length"};

template <size_t kCount>
bool IsOneOf(const std::array<std::string_view, kCount>& names, const std::string& dim) {
  const std::string lower = LowerCase(dim);
  return std::find(names.begin(), names.end(), lower) != names.end();
}

bool IsSequence(const std::string& dim) { return IsOneOf(kSequenceNames, dim); }

bool IsInSeconds(const Fit& fit) { return fit.plan.cost_unit == "ns"; }

// Returns the size of the only bound dimension of that kind, or nothing.
std::optional<int64_t> OnlySize(const DimSizes& dims, bool (*is_kind)(const std::string&)) {
  std::optional<int64_t> only;
  for (const auto& [name, size] : dims) {
    if (!is_kind(name)) continue;
    if (only) return std::nullopt;
    only = size;
  }
  return only;
}

}  // namespace

bool IsBatchName(const std::string& dim) { return IsOneOf(kBatchNames, dim); }

FitRate RateOf(const Fit& fit) {
  const std::string per = IsInSeconds(fit) ? "/s" : "/cost";
  const DimSizes& bound = fit.plan.dims;
  const auto is_sequence = [](const auto& dim) { return IsSequence(dim.first); };
  if (IsBatchName(fit.dim)) {
    const std::optional<int64_t> tokens = OnlySize(bound, IsSequence);
    return tokens ? FitRate{"tokens" + per, "tokens" + per, *tokens}
                  : FitRate{"samples" + per, "samples" + per, 1};
  }
  const std::optional<int64_t> samples = OnlySize(bound, IsBatchName);
  const bool is_only_sequence =
      IsSequence(fit.dim) && std::none_of(bound.begin(), bound.end(), is_sequence);
  if (is_only_sequence && samples) return {"tokens" + per, "tokens" + per, *samples};
  return {Printable(fit.dim, kLongestName) + per, "1" + per, 1};
}

double Throughput(const Fit& fit, const FitRow& row) {
  const double rate = row.throughput() * static_cast<double>(RateOf(fit).count_of_one);
  return rate * (IsInSeconds(fit) ? kNanoseconds : 1);
}

}  // namespace ckplan
