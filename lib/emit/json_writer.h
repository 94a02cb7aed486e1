// Writes JSON whose lines are worth comparing: one member or one row of a table per line, long
// lists of numbers many to a line. The same calls give the same bytes everywhere.
//
//   JsonWriter json;
//   json.BeginObject(JsonLayout::kLines);
//   json.Key("name").Text("conv");                                        {
//   json.Key("ids").BeginArray(JsonLayout::kInline);                        "name": "conv",
//   json.Integer(1).Integer(2).End();                                       "ids": [1, 2]
//   json.End();                                                           }
//
// Text is UTF-8; bytes that are not become U+FFFD, so that what is written can always be read.
// Characters that cannot be seen (lib/base/printable.h) are escaped, so that it can be shown, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/units.h"

namespace ckplan {

enum class JsonLayout {
  kLines,    // Each member on a line of its own.
  kInline,   // All on the line where it begins; what is inside must be kInline too.
  kWrapped,  // Sixteen members on a line.
};

class JsonWriter {
 public:
  JsonWriter& BeginObject(JsonLayout layout) { return Begin('{', '}', layout); }
  JsonWriter& BeginArray(JsonLayout layout) { return Begin('[', ']', layout); }
  JsonWriter& End();
  JsonWriter& Key(std::string_view key);

  JsonWriter& Text(std::string_view text);
  JsonWriter& Integer(int64_t number);
  // With so many decimals: a measurement. Infinite and undefined ones are null.
  JsonWriter& Decimal(double number, int decimals);
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

  // The finished document, with a line feed at its end.
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
  bool has_key_ = false;  // A key waits for its value.
};

}  // namespace ckplan
