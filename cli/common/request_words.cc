#include "cli/common/request_words.h"

#include <array>
#include <variant>

namespace ckplan {
namespace {

struct WordOfField {
  std::string_view field;
  std::string_view word;  // As in the table of fields.
};

struct Spelling {
  WordOfField word;
  std::string_view typed;
};
constexpr std::array kSpellings = {Spelling{{"autograd", "torch"}, "torch-cpu"}};

const WordsMember& WordsIn(const RequestField& field) {
  return std::get<WordsMember>(field.member);
}

std::string_view Typed(const RequestField& field, std::string_view word) {
  for (const Spelling& spelling : kSpellings) {
    if (spelling.word.field == field.name && spelling.word.word == word) return spelling.typed;
  }
  return word;
}

// Returns the word that is meant where none is typed, as in the table of fields.
std::string_view DefaultWord(const RequestField& field, Reading reading) {
  const PlanRequest captured = RequestAsPyTorchRuns();
  return WordsIn(field).words[reading == Reading::kCaptured ? WordsIn(field).get(captured) : 0];
}

}  // namespace

bool HasDefaultOfReading(std::string_view field, Reading reading) {
  return reading == Reading::kCaptured &&
         RequestAsPyTorchRuns().implied.contains(std::string(field));
}

std::vector<std::string> WordChoices(const RequestField& field, Reading reading) {
  std::vector<std::string> typed = {std::string(Typed(field, DefaultWord(field, reading)))};
  for (const std::string_view word : WordsIn(field).words) {
    if (word != DefaultWord(field, reading)) typed.emplace_back(Typed(field, word));
  }
  return typed;
}

std::vector<std::string> OldSpellings(const RequestField& field) {
  std::vector<std::string> older;
  for (const Spelling& spelling : kSpellings) {
    if (spelling.word.field == field.name) older.emplace_back(spelling.word.word);
  }
  return older;
}

void SetByTypedWord(const RequestField& field, std::string_view word, PlanRequest* request) {
  const WordsMember& member = WordsIn(field);
  for (size_t i = 0; i < member.words.size(); ++i) {
    const bool is_meant = member.words[i] == word || Typed(field, member.words[i]) == word;
    if (is_meant) member.set(request, i);
  }
}

std::string_view WordToType(const RequestField& field, const PlanRequest& request) {
  const std::string_view word = WordsIn(field).words[WordsIn(field).get(request)];
  return word == DefaultWord(field, Reading::kCaptured) ? std::string_view() : Typed(field, word);
}

}  // namespace ckplan
