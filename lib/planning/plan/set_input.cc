#include "lib/planning/plan/set_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "lib/base/text.h"

namespace ckplan {
namespace {

constexpr size_t kMaxRank = 16;
constexpr size_t kShownText = 80;

// Reads nested lists of numbers. Lists on the same level must have the same length.
class ValueReader {
 public:
  explicit ValueReader(std::string_view text) : text_(text) {}

  // Returns false and sets `fault` if the text is not a value.
  bool Read(SetInput* input) {
    // "2,3" is short for "[2,3]".
    const bool is_bare_list = text_.find('[') == text_.npos && text_.find(',') != text_.npos;
    const std::string bracketed = fmt::format("[{}]", text_);
    if (is_bare_list) text_ = bracketed;
    while (at_ < text_.size() && fault.empty()) Next();
    if (fault.empty() && (depth_ > 0 || numbers_.empty()))
      fault = "a bracket is unclosed, or a number is missing";
    if (!fault.empty()) return false;
    input->dims.assign(lengths_.begin(), lengths_.end());
    input->is_real = is_real_;
    for (const Number& number : numbers_) {
      if (is_real_) {
        input->reals.push_back(number.real);
      } else {
        input->ints.push_back(number.integer);
      }
    }
    return true;
  }

  std::string fault;

 private:
  struct Number {
    int64_t integer = 0;
    double real = 0;
  };

  void Next() {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (c == '[') {
      Open();
    } else if (c == ']') {
      Close();
    } else if (c == ',') {
      if (depth_ == 0 || !has_item_) return Fail();
      has_item_ = false;
      ++at_;
    } else {
      ReadNumber();
    }
  }

  void Open() {
    if (has_item_ || (depth_ == 0 && !lengths_.empty()) || depth_ == kMaxRank) return Fail();
    if (depth_ == lengths_.size()) {
      if (!numbers_.empty()) return Fail();  // A number next to a list.
      lengths_.push_back(-1);
    }
    ++depth_;
    counts_.push_back(0);
    ++at_;
  }

  void Close() {
    if (depth_ == 0 || !has_item_) return Fail();
    const int64_t count = counts_.back();
    counts_.pop_back();
    --depth_;
    int64_t& length = lengths_[depth_];
    if (length >= 0 && length != count) {
      fault = fmt::format("its lists have different lengths, {} and {}", length, count);
      return;
    }
    length = count;
    AddItem();
    ++at_;
  }

  void ReadNumber() {
    if (has_item_) return Fail();
    if (depth_ != lengths_.size() || (depth_ == 0 && !numbers_.empty())) return Fail();
    const size_t end = std::min(text_.find_first_of("[], \t\n\r", at_), text_.size());
    const std::optional<Number> number = NumberIn(text_.substr(at_, end - at_));
    if (!number) return Fail();
    if (numbers_.size() == kMaxSetNumbers) {
      fault = fmt::format("it has more than {} numbers", kMaxSetNumbers);
      return;
    }
    numbers_.push_back(*number);
    at_ = end;
    AddItem();
  }

  void AddItem() {
    has_item_ = true;
    if (depth_ > 0) ++counts_.back();
  }

  std::optional<Number> NumberIn(std::string_view word) {
    if (word == "true" || word == "True") return Number{1, 1};
    if (word == "false" || word == "False") return Number{0, 0};
    const char* const end = word.data() + word.size();
    Number number;
    const auto whole = std::from_chars(word.data(), end, number.integer);
    if (whole.ec == std::errc() && whole.ptr == end) {
      number.real = static_cast<double>(number.integer);
      return number;
    }
    const auto real = std::from_chars(word.data(), end, number.real);
    if (real.ec != std::errc() || real.ptr != end || !std::isfinite(number.real)) {
      return std::nullopt;
    }
    is_real_ = true;
    return number;
  }

  void Fail() {
    fault = fmt::format("\"{}\" is not a number or a list of numbers",
                        Printable(std::string(text_), kShownText));
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t depth_ = 0;
  bool has_item_ = false;  // The current list already has an item.
  bool is_real_ = false;
  std::vector<int64_t> lengths_;  // By depth; -1 until a list of that depth has ended.
  std::vector<int64_t> counts_;   // The number of items so far in each open list.
  std::vector<Number> numbers_;
};

// Appends the numbers from `at` on, as nested lists of the dimensions from `axis` on.
void AppendLists(const SetInput& input, size_t axis, size_t* at, std::string* text) {
  if (axis == input.dims.size()) {
    *text += input.is_real ? TextOfReal(input.reals[*at]) : fmt::format("{}", input.ints[*at]);
    ++*at;
    return;
  }
  *text += '[';
  for (int64_t i = 0; i < input.dims[axis]; ++i) {
    if (i > 0) *text += ',';
    AppendLists(input, axis + 1, at, text);
  }
  *text += ']';
}

}  // namespace

Result<SetInput> ParseSetInput(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size()) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("\"{}\" is not INPUT=VALUE, such as use_cache=true or sizes=2,3",
                                 Printable(std::string(text), kShownText)));
  }
  SetInput input;
  input.name = text.substr(0, equals);
  ValueReader reader(text.substr(equals + 1));
  if (reader.Read(&input)) return input;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("the value of input \"{}\": {}; write 2, true, 2,3 or [[1,0],[1,1]]",
                               Printable(input.name, kShownText), reader.fault));
}

std::string TextOfReal(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::string TextOf(const SetInput& input) {
  std::string text = input.name + "=";
  size_t at = 0;
  AppendLists(input, 0, &at, &text);
  return text;
}

}  // namespace ckplan
