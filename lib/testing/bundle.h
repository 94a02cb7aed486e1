// A bundle holds several small test inputs in one text file:
//
//   # What they are about.              lines before the first heading
//
//   ======== one_name                   a heading: eight equals signs and a name
//   any lines                           the text, up to the empty line before the next heading
//
//   ======== third_name no-newline      the last line break isn't part of the text
//   no line break follows
//
//   ======== another_name base64        bytes that aren't text
//   AAECAw==
//
// testdata/cli holds command-line tests this way, and testdata/fuzz the inputs of fuzz targets.
// A text has no line that begins like a heading. Writing what was read gives the same bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

enum class BundleForm {
  kText,  // Ends with a line break.
  kNoNewline,
  kBase64,
};

struct BundleEntry {
  std::string name;
  std::string text;  // Decoded.
  BundleForm form = BundleForm::kText;
  int line = 0;  // The heading's line number as read, from 1.
};

struct Bundle {
  std::string head;  // The lines before the first heading, without the empty line before it.
  std::vector<BundleEntry> entries;

  // Returns nullptr if there is no entry of this name.
  BundleEntry* Find(std::string_view name);
};

// kInvalidInput: two entries have one name, a heading is malformed or lacks the empty line before
// it, base64 is damaged, or there are no entries.
Result<Bundle> ParseBundle(std::string_view text);
std::string FormatBundle(const Bundle& bundle);

}  // namespace ckplan
