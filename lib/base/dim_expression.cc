#include "lib/base/dim_expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

#include "lib/base/text.h"
#include "lib/base/units.h"

namespace ckplan {
namespace {

// A fraction in lowest terms with a positive denominator: expressions divide before they round.
struct Fraction {
  int64_t above = 0;
  int64_t below = 1;
};
using Value = std::optional<Fraction>;  // Nothing: no value, such as x/0, or beyond 64 bits.

Value MakeFraction(std::optional<int64_t> above, std::optional<int64_t> below) {
  constexpr int64_t kLeast = -(int64_t{1} << 62);
  if (!above || !below || *below == 0 || *above < kLeast || *below < kLeast) return std::nullopt;
  const int64_t divisor = std::gcd(*above, *below) * (*below < 0 ? -1 : 1);
  return Fraction{*above / divisor, *below / divisor};
}

int64_t FloorOf(const Fraction& a) { return a.above / a.below - (a.above % a.below < 0 ? 1 : 0); }

Value Product(const Value& a, const Value& b) {
  if (!a || !b) return std::nullopt;
  return MakeFraction(CheckedMul(a->above, b->above), CheckedMul(a->below, b->below));
}

Value Quotient(const Value& a, const Value& b) {
  if (!a || !b) return std::nullopt;
  return MakeFraction(CheckedMul(a->above, b->below), CheckedMul(a->below, b->above));
}

Value Sum(const Value& a, const Value& b) {
  if (!a || !b) return std::nullopt;
  const auto left = CheckedMul(a->above, b->below);
  const auto right = CheckedMul(b->above, a->below);
  if (!left || !right) return std::nullopt;
  return MakeFraction(CheckedAdd(*left, *right), CheckedMul(a->below, b->below));
}

Value Negative(const Value& a) { return Product(a, Fraction{-1, 1}); }
Value Floor(const Value& a) { return a ? Value(Fraction{FloorOf(*a), 1}) : std::nullopt; }
Value Ceiling(const Value& a) { return Negative(Floor(Negative(a))); }
Value FloorQuotient(const Value& a, const Value& b) { return Floor(Quotient(a, b)); }
Value Remainder(const Value& a, const Value& b) {
  return Sum(a, Negative(Product(b, FloorQuotient(a, b))));
}

Value Larger(const Value& a, const Value& b) {
  const Value difference = Sum(a, Negative(b));
  if (!difference) return std::nullopt;
  return difference->above < 0 ? b : a;
}
Value Smaller(const Value& a, const Value& b) { return Negative(Larger(Negative(a), Negative(b))); }

Value Power(const Value& base, const Value& exponent) {
  constexpr int64_t kLargest = 62;
  if (!exponent || exponent->below != 1 || exponent->above < 0 || exponent->above > kLargest) {
    return std::nullopt;
  }
  Value power = Fraction{1, 1};
  for (int64_t i = 0; i < exponent->above; ++i) power = Product(power, base);
  return power;
}

struct Function {
  std::string_view name;  // In lower case.
  Value (*of_one)(const Value&) = nullptr;
  Value (*of_two)(const Value&, const Value&) = nullptr;
};
constexpr Function kFunctions[] = {{"floor", Floor, nullptr},           {"ceil", Ceiling, nullptr},
                                   {"ceiling", Ceiling, nullptr},       {"max", nullptr, Larger},
                                   {"min", nullptr, Smaller},           {"mod", nullptr, Remainder},
                                   {"floordiv", nullptr, FloorQuotient}};

// Reads by recursive descent, with Python's precedence.
class Reader {
 public:
  Reader(std::string_view text, const std::map<std::string, int64_t>* sizes)
      : rest_(text), sizes_(sizes) {}

  // Returns the value; is_valid() says whether the text is an expression at all.
  Value Read() {
    Value value = ReadSum();
    Skip();
    is_valid_ = is_valid_ && rest_.empty();
    return is_valid_ ? value : std::nullopt;
  }
  // A single name or number is not an expression.
  bool is_valid() const { return is_valid_ && has_operator_; }
  const std::set<std::string>& variables() const { return variables_; }

 private:
  static bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
  static bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

  void Skip() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  bool Take(std::string_view symbol) {
    Skip();
    if (!rest_.starts_with(symbol)) return false;
    rest_.remove_prefix(symbol.size());
    return true;
  }

  bool TakeOperator(std::string_view symbol) {
    if (!Take(symbol)) return false;
    has_operator_ = true;
    return true;
  }

  Value Fail() {
    is_valid_ = false;
    return std::nullopt;
  }

  Value ReadSum() {
    constexpr int kDeepest = 64;
    if (++depth_ > kDeepest) return Fail();
    Value value = ReadProduct();
    while (is_valid_) {
      if (TakeOperator("+")) {
        value = Sum(value, ReadProduct());
      } else if (TakeOperator("-")) {
        value = Sum(value, Negative(ReadProduct()));
      } else {
        break;
      }
    }
    --depth_;
    return value;
  }

  Value ReadProduct() {
    Value value = ReadSigned();
    while (is_valid_) {
      if (TakeOperator("*")) {
        value = Product(value, ReadSigned());
      } else if (TakeOperator("//")) {
        value = FloorQuotient(value, ReadSigned());
      } else if (TakeOperator("/")) {
        value = Quotient(value, ReadSigned());
      } else if (TakeOperator("%")) {
        value = Remainder(value, ReadSigned());
      } else {
        break;
      }
    }
    return value;
  }

  Value ReadSigned() {
    bool is_negative = false;
    while (TakeOperator("-")) is_negative = !is_negative;
    Value value = ReadAtom();
    if (is_valid_ && (TakeOperator("**") || TakeOperator("^"))) value = Power(value, ReadAtom());
    return is_negative ? Negative(value) : value;
  }

  Value ReadAtom() {
    if (Take("(")) {
      const Value value = ReadSum();
      return Take(")") ? value : Fail();
    }
    Skip();
    if (rest_.empty()) return Fail();
    if (IsDigit(rest_[0])) return ReadNumber();
    return IsLetter(rest_[0]) ? ReadName() : Fail();
  }

  Value ReadNumber() {
    std::optional<int64_t> number = 0;
    for (; !rest_.empty() && IsDigit(rest_[0]); rest_.remove_prefix(1)) {
      if (number) number = CheckedMul(*number, int64_t{10});
      if (number) number = CheckedAdd(*number, int64_t{rest_[0] - '0'});
    }
    return MakeFraction(number, 1);
  }

  Value ReadName() {
    size_t size = 1;
    while (size < rest_.size() &&
           (IsLetter(rest_[size]) || IsDigit(rest_[size]) || rest_[size] == '.')) {
      ++size;
    }
    std::string name(rest_.substr(0, size));
    rest_.remove_prefix(size);
    if (TakeOperator("(")) return ReadCall(name);
    variables_.insert(name);
    if (sizes_ == nullptr) return std::nullopt;
    const auto found = sizes_->find(name);
    return found == sizes_->end() ? std::nullopt : MakeFraction(found->second, 1);
  }

  Value ReadCall(const std::string& typed) {
    const std::string name = LowerCase(typed);
    const auto* const function =
        std::find_if(std::begin(kFunctions), std::end(kFunctions),
                     [&](const Function& known) { return known.name == name; });
    if (function == std::end(kFunctions)) return Fail();
    Value value = ReadSum();
    if (function->of_one != nullptr) return Take(")") ? function->of_one(value) : Fail();
    if (!Take(",")) return Fail();
    do {
      value = function->of_two(value, ReadSum());
    } while (is_valid_ && Take(","));
    return Take(")") ? value : Fail();
  }

  std::string_view rest_;
  const std::map<std::string, int64_t>* const sizes_;
  std::set<std::string> variables_;
  bool has_operator_ = false;
  bool is_valid_ = true;
  int depth_ = 0;
};

}  // namespace

std::optional<std::set<std::string>> VariablesOf(std::string_view name) {
  Reader reader(name, nullptr);
  static_cast<void>(reader.Read());
  if (!reader.is_valid()) return std::nullopt;
  return reader.variables();
}

std::optional<int64_t> EvaluateDim(std::string_view name,
                                   const std::map<std::string, int64_t>& sizes) {
  Reader reader(name, &sizes);
  const Value value = reader.Read();
  if (!reader.is_valid() || !value || value->below != 1) return std::nullopt;
  return value->above;
}

}  // namespace ckplan
