// Reads values out of a JSON document and remembers every fault, each with its place.
//
//   CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, "g.json"));
//   const JsonView root = document.root();
//   const int64_t bytes = root["tensors"].at(3)["bytes"].Integer();
//   CKPLAN_RETURN_IF_ERROR(document.Status());   // g.json: /tensors/3/bytes: ...
//
// A reader runs to its end whatever it meets: a value that is absent or of the wrong kind reads as
// 0, false or empty, and Status() reports it. Thus one run shows all faults (the first ten), and no
// reader has a branch for each of them. A value must not be used before Status() was asked, except
// to read on.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

// What is wrong, and where it was found first.
struct JsonFault {
  std::string place;
  std::string what;
  size_t places = 1;
  const nlohmann::json* last = nullptr;  // Where it was found last.
};

// What a document and the views into it share.
struct JsonState {
  nlohmann::json root;
  std::vector<JsonFault> faults;  // The first different ones.
  size_t fault_count = 0;         // Different ones.
};

// A value of a document. Two pointers; the document must outlive it. Its place is searched for
// when a fault is reported, so that reading what is sound costs nothing for it.
class JsonView {
 public:
  JsonView(const nlohmann::json* value, JsonState* state) : value_(value), state_(state) {}

  // True for an object that has the key.
  bool has(std::string_view key) const;
  // True for an object that has the key, with another value than null.
  bool has_value(std::string_view key) const;
  // The member of that key; a fault if there is none.
  JsonView operator[](std::string_view key) const;

  size_t size() const;  // Length of an array; for anything else 0, and a fault.
  JsonView at(size_t index) const;

  int64_t Integer(int64_t low = 0, int64_t high = std::numeric_limits<int64_t>::max()) const;
  int64_t IntegerOr(std::string_view key, int64_t absent) const;
  bool Boolean() const;
  bool BooleanOr(std::string_view key, bool absent) const;
  std::string Text() const;
  std::string TextOr(std::string_view key, std::string_view absent) const;
  // The number of the text in `choices`; a fault, and 0, if it is none of them.
  size_t Choice(const std::vector<std::string_view>& choices) const;

  // Calls visit(key, view) for each member, in the order of the keys.
  template <typename Visit>
  void ForEachMember(Visit visit) const {
    if (!ExpectObject()) return;
    for (auto it = value_->begin(); it != value_->end(); ++it) {
      visit(it.key(), JsonView(&it.value(), state_));
    }
  }

  bool is_null() const { return value_ != nullptr && value_->is_null(); }
  bool is_text() const { return value_ != nullptr && value_->is_string(); }
  // An integer from 0 to 2^63 - 1.
  bool is_file_id() const;
  bool is_array() const { return value_ != nullptr && value_->is_array(); }
  // "/nodes/3/bytes", after RFC 6901; "" for the document itself.
  std::string place() const;
  void Fault(std::string_view what) const;

 private:
  bool ExpectObject() const;
  void WrongKind(std::string_view wanted) const;

  const nlohmann::json* value_;  // Null if absent, which has been reported as a fault already.
  JsonState* state_;
};

class JsonDocument {
 public:
  // `where` names the text in messages. kInvalidInput: not JSON, an object with the same key twice,
  // or too large for MeasureJson.
  static Result<JsonDocument> Parse(std::string_view text, std::string where);

  JsonView root() const { return {&state_->root, state_.get()}; }
  // kInvalidInput with all faults so far, if there are any.
  Result<Done> Status() const;
  const std::string& where() const { return where_; }

 private:
  JsonDocument(nlohmann::json root, std::string where);

  std::string where_;
  std::unique_ptr<JsonState> state_;
};

// The major number of root["schema_version"] must be 1; an absent version passes if `may_lack`.
// Minor versions add fields only, and readers ignore those that they do not know.
inline constexpr std::string_view kSchemaVersion = "1.0";
void CheckSchemaVersion(const JsonView& root, bool may_lack);

}  // namespace ckplan
