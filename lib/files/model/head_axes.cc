#include "lib/files/model/head_axes.h"

#include <algorithm>
#include <string_view>

namespace ckplan {

HeadAxes::HeadAxes(const Dims& dims, const std::string& letters) : dims_(dims.size()) {
  for (size_t i = dims.size(); i-- > 0;) {
    int64_t place = 1;
    for (size_t inner = i + 1; inner < dims.size(); ++inner) {
      if (letters[inner] == letters[i]) place *= dims[inner];
    }
    if (dims[i] > 1) dims_[i] = {{letters[i], dims[i], place}};
  }
}

HeadAxes HeadAxes::TransposedBy(const std::vector<int64_t>& order) const {
  HeadAxes result = *this;
  for (size_t i = 0; i < order.size(); ++i) result.dims_[i] = dims_[static_cast<size_t>(order[i])];
  return result;
}

HeadAxes HeadAxes::BeforeTransposeBy(const std::vector<int64_t>& order) const {
  HeadAxes result = *this;
  for (size_t i = 0; i < order.size(); ++i) result.dims_[static_cast<size_t>(order[i])] = dims_[i];
  return result;
}

std::vector<HeadAxes::Factor> HeadAxes::Flat() const {
  std::vector<Factor> flat;
  for (const std::vector<Factor>& dim : dims_) flat.insert(flat.end(), dim.begin(), dim.end());
  return flat;
}

std::optional<HeadAxes> HeadAxes::Reshaped(const Dims& dims) const {
  std::vector<Factor> flat = Flat();
  std::reverse(flat.begin(), flat.end());  // The outermost is at the back.
  HeadAxes result;
  result.repeats_ = repeats_;
  for (const int64_t dim : dims) {
    std::vector<Factor> own;
    int64_t left = dim;
    while (left > 1) {
      if (flat.empty()) return std::nullopt;
      Factor& next = flat.back();
      if (left % next.size == 0) {
        left /= next.size;
        own.push_back(next);
        flat.pop_back();
        continue;
      }
      if (next.size % left != 0) return std::nullopt;
      next.size /= left;
      own.push_back({next.axis, left, next.place * next.size});
      left = 1;
    }
    result.dims_.push_back(std::move(own));
  }
  if (!flat.empty()) return std::nullopt;
  return result;
}

std::optional<HeadAxes> HeadAxes::BeforeExpand(const Dims& dims) const {
  const size_t missing = dims_.size() - std::min(dims.size(), dims_.size());
  HeadAxes result = *this;
  for (size_t i = 0; i < dims_.size(); ++i) {
    const bool is_repeated = (i < missing || dims[i - missing] == 1) && !dims_[i].empty();
    if (!is_repeated) continue;
    const Factor& factor = dims_[i].front();
    if (dims_[i].size() > 1 || factor.axis != 'h' || factor.place != 1 || result.repeats_ > 1) {
      return std::nullopt;
    }
    result.repeats_ = factor.size;
    result.dims_[i].clear();
  }
  result.dims_.erase(result.dims_.begin(), result.dims_.begin() + static_cast<int64_t>(missing));
  if (result.repeats_ == repeats_) return result;
  for (std::vector<Factor>& dim : result.dims_) {
    for (Factor& factor : dim) {
      if (factor.axis != 'h') continue;
      if (factor.place % result.repeats_ != 0) return std::nullopt;
      factor.place /= result.repeats_;
    }
  }
  return result;
}

std::optional<std::string> HeadAxes::Order() const {
  constexpr std::string_view kAxes = "bhsd";
  std::vector<Factor> merged;
  for (const Factor& factor : Flat()) {
    if (!merged.empty() && merged.back().axis == factor.axis &&
        merged.back().place == factor.place * factor.size) {
      merged.back().place = factor.place;
    } else {
      merged.push_back(factor);
    }
  }
  std::string order;
  for (const Factor& factor : merged) {
    if (factor.place != 1 || order.find(factor.axis) != order.npos) return std::nullopt;
    order += factor.axis;
  }
  std::string missing;
  for (const char axis : kAxes) {
    if (order.find(axis) == order.npos) missing += axis;
  }
  const bool has_row = missing.empty() || missing.back() != 'd';
  if (has_row && order.back() != 'd') return std::nullopt;
  if (has_row) return missing + order;
  missing.pop_back();
  return missing + order + 'd';
}

}  // namespace ckplan
