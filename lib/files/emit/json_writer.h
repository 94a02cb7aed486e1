// Writes JSON that diffs well: one member or table row per line, and sixteen numbers of a long list
// per line. The same calls give the same bytes on every platform.
//
//   JsonWriter json;
//   json.BeginObject(JsonLayout::kLines);
//   json.Key("name").Text("conv");                                        {
//   json.Key("ids").BeginArray(JsonLayout::kInline);                        "name": "conv",
//   json.Integer(1).Integer(2).End();                                       "ids": [1, 2]
//   json.End();                                                           }
//
// Bytes that are not UTF-8 become U+FFFD, so that the output is valid JSON. Invisible characters
// (lib/base/text.h) are escaped, so that the output is safe to show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

enum class JsonLayout {
  kLines,    // Each member on its own line.
  kInline,   // All members on one line; nested values must be kInline, too.
  kWrapped,  // Sixteen members per line.
};

class JsonWriter {
 public:
  JsonWriter& BeginObject(JsonLayout layout) { return Begin('{', '}', layout); }
  JsonWriter& BeginArray(JsonLayout layout) { return Begin('[', ']', layout); }
  JsonWriter& End();
  JsonWriter& Key(std::string_view key);

  JsonWriter& Text(std::string_view text);
  // Writes null for an empty text.
  JsonWriter& TextOrNull(std::string_view text) { return text.empty() ? Null() : Text(text); }
  JsonWriter& Integer(int64_t number);
  JsonWriter& Integer(const std::optional<int64_t>& number) {
    return number ? Integer(*number) : Null();
  }
  // Writes null for infinity and NaN.
  JsonWriter& Decimal(double number, int decimals);
  JsonWriter& Decimal(const std::optional<double>& number, int decimals) {
    return number ? Decimal(*number, decimals) : Null();
  }
  JsonWriter& Boolean(bool value);
  JsonWriter& Null();
  template <typename Unit>
  JsonWriter& Amount(Quantity<Unit> amount) {
    return Integer(amount.count());
  }
  template <typename Unit>
  JsonWriter& Amount(const std::optional<Quantity<Unit>>& amount) {
    return amount ? Integer(amount->count()) : Null();
  }

  // Returns the finished document, with a line feed at its end.
  std::string Finish() &&;

 private:
  struct Level {
    char closing;
    JsonLayout layout;
    size_t members = 0;
  };
  JsonWriter& Begin(char opening, char closing, JsonLayout layout);
  void BeginValue();
  void NewLine();

  std::string text_;
  std::vector<Level> levels_;
  bool has_key_ = false;  // A key was written, but its value was not.
};

}  // namespace ckplan
