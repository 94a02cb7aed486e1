// Writes whole files, and never over a file that is read. No reader ever sees half a file: each
// file is written next to its place under another name, and renamed once all of them are complete
// (lib/base/file.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/result.h"

namespace ckplan {

// Checks, before long work starts, that a file can be written at `path`; kIo if not. "-" can always
// be written.
Result<Done> CheckWritable(const std::string& path);

// A file that a command reads, and what messages call it: "the model".
struct InputFile {
  std::string role;
  std::string path;
};
// Returns a model or graph.json with the files of its weights.
std::vector<InputFile> InputsOf(const std::string& source);

// kUsage: an output is one of the inputs, or two outputs are one file, whatever links and spellings
// lead there. "-" is standard input or output, which may also be a file. Two names in one folder
// that differ only in case are one file on some systems, so they count as one.
Result<Done> CheckApart(const std::vector<InputFile>& inputs,
                        const std::vector<std::string>& outputs);

// Returns `stem`.json, or a numbered name if that is one of these files: "plan2.json".
std::string NewJsonFile(std::string_view stem, const std::vector<std::string>& taken);

using PendingFiles = std::vector<std::unique_ptr<PendingFile>>;

struct OutputFile {
  std::string path;
  std::string_view text;
};
// Writes all files or none, unless renaming one of them fails. WriteFiles does both steps:
// FinishFiles writes `files` under temporary names and adds them to `pending`, which changes no
// place yet; CommitFiles renames all pending files.
Result<Done> WriteFiles(const std::vector<OutputFile>& files);
Result<Done> FinishFiles(const std::vector<OutputFile>& files, PendingFiles& pending);
Result<Done> CommitFiles(const PendingFiles& pending);

}  // namespace ckplan
