#include "lib/base/dim_expression.h"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "lib/base/text.h"
#include "lib/base/units.h"

namespace ckplan {
namespace {

// A fraction in lowest terms with a positive denominator. Expressions such as floor(h/8 - 1/8)
// divide before they round, so integers are not enough.
struct Fraction {
  int64_t numerator = 0;
  int64_t denominator = 1;
};
using Value = std::optional<Fraction>;  // Empty if undefined, such as x/0, or beyond 64 bits.

Value MakeFraction(std::optional<int64_t> numerator, std::optional<int64_t> denominator) {
  constexpr int64_t kMin = -(int64_t{1} << 62);
  if (!numerator || !denominator || *denominator == 0 || *numerator < kMin || *denominator < kMin)
    return std::nullopt;
  const int64_t divisor = std::gcd(*numerator, *denominator) * (*denominator < 0 ? -1 : 1);
  return Fraction{*numerator / divisor, *denominator / divisor};
}

int64_t FloorOf(const Fraction& a) {
  return a.numerator / a.denominator - (a.numerator % a.denominator < 0 ? 1 : 0);
}

Value Product(const Value& a, const Value& b) {
  if (!a || !b) return std::nullopt;
  return MakeFraction(CheckedMul(a->numerator, b->numerator),
                      CheckedMul(a->denominator, b->denominator));
}

Value Quotient(const Value& a, const Value& b) {
  if (!a || !b) return std::nullopt;
  return MakeFraction(CheckedMul(a->numerator, b->denominator),
                      CheckedMul(a->denominator, b->numerator));
}

Value Sum(const Value& a, const Value& b) {
  if (!a || !b) return std::nullopt;
  const auto left = CheckedMul(a->numerator, b->denominator);
  const auto right = CheckedMul(b->numerator, a->denominator);
  if (!left || !right) return std::nullopt;
  return MakeFraction(CheckedAdd(*left, *right), CheckedMul(a->denominator, b->denominator));
}

Value Negative(const Value& a) { return Product(a, Fraction{-1, 1}); }
Value Floor(const Value& a) { return a ? Value(Fraction{FloorOf(*a), 1}) : std::nullopt; }
Value CeilingOf(const Value& a) { return Negative(Floor(Negative(a))); }
Value FloorQuotient(const Value& a, const Value& b) { return Floor(Quotient(a, b)); }
Value Remainder(const Value& a, const Value& b) {
  return Sum(a, Negative(Product(b, FloorQuotient(a, b))));
}

Value Larger(const Value& a, const Value& b) {
  const Value difference = Sum(a, Negative(b));
  if (!difference) return std::nullopt;
  return difference->numerator < 0 ? b : a;
}
Value Smaller(const Value& a, const Value& b) { return Negative(Larger(Negative(a), Negative(b))); }

Value Power(const Value& base, const Value& exponent) {
  constexpr int64_t kMaxExponent = 62;
  if (!exponent || exponent->denominator != 1 || exponent->numerator < 0 ||
      exponent->numerator > kMaxExponent) {
    return std::nullopt;
  }
  Value power = Fraction{1, 1};
  for (int64_t i = 0; i < exponent->numerator; ++i) power = Product(power, base);
  return power;
}

struct Function {
  std::string_view name;  // In lower case.
  Value (*unary)(const Value&) = nullptr;
  Value (*binary)(const Value&, const Value&) = nullptr;
};
constexpr Function kFunctions[] = {
    {"floor", Floor, nullptr},           {"ceil", CeilingOf, nullptr},
    {"ceiling", CeilingOf, nullptr},     {"max", nullptr, Larger},
    {"min", nullptr, Smaller},           {"mod", nullptr, Remainder},
    {"floordiv", nullptr, FloorQuotient}};

// A recursive-descent parser with Python's operator precedence.
class Reader {
 public:
  Reader(std::string_view text, const std::map<std::string, int64_t>* sizes)
      : rest_(text), sizes_(sizes) {}

  // Evaluates the expression. is_valid() says whether the text is an expression.
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
    constexpr int kMaxDepth = 64;
    if (++depth_ > kMaxDepth) return Fail();
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
    if (function->unary != nullptr) return Take(")") ? function->unary(value) : Fail();
    if (!Take(",")) return Fail();
    do {
      value = function->binary(value, ReadSum());
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

std::optional<std::set<std::string>> FindDimVariables(std::string_view name) {
  Reader reader(name, nullptr);
  static_cast<void>(reader.Read());
  if (!reader.is_valid()) return std::nullopt;
  return reader.variables();
}

std::optional<int64_t> EvaluateDim(std::string_view name,
                                   const std::map<std::string, int64_t>& sizes) {
  Reader reader(name, &sizes);
  const Value value = reader.Read();
  if (!reader.is_valid() || !value || value->denominator != 1) return std::nullopt;
  return value->numerator;
}

}  // namespace ckplan
