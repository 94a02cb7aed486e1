// A bundle stores several small test inputs in one text file:
//
//   # A comment on the inputs.          lines before the first heading
//
//   ======== one_name                   a heading: eight equals signs and a name
//   any lines                           the text, up to the empty line before the next heading
//
//   ======== third_name no-newline      the last line break isn't part of the text
//   no line break follows
//
//   ======== another_name base64        binary data
//   AAECAw==
//
// testdata/cli holds command-line tests this way, and testdata/fuzz the inputs of fuzz targets.
// No line of an input may begin like a heading. Parsing and formatting a bundle gives the same
// bytes.
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

// Returns kInvalidInput if two entries have the same name, a heading is malformed or does not
// follow an empty line, base64 is invalid, or the bundle is empty.
Result<Bundle> ParseBundle(std::string_view text);
std::string FormatBundle(const Bundle& bundle);

}  // namespace ckplan
