#include "cli/common/other_tool_names.h"

#include <algorithm>
#include <cctype>
#include <span>

namespace ckplan {
namespace {

struct OtherToolNames {
  std::string_view words;  // Each between blanks.
  std::string_view advice;
};

constexpr OtherToolNames kFlags[] = {
    {" --batch-size --batchsize --bs --bsz --train-batch-size --per-device-train-batch-size ",
     "set the batch with --batch 64"},
    {" --seq-len --seq-length --seqlen --sequence-length --max-length --max-seq-len --image-size "
     "--img-size --imgsz --height --width ",
     "set sizes with -D NAME=N; `ckplan inspect MODEL` shows the names"},
    {" --device --gpu --cuda --target --accelerator ",
     "planning needs no device; --cost flops:rtx4090 uses its speed, --memory rtx4090 its memory"},
    {" --vram --mem --max-memory --gpu-memory --memory-budget --budget-bytes --max-mem ",
     "limit a step's memory with --memory 16GiB or --budget 16GiB"},
    {" --gpus --num-gpus --world-size --nproc --nproc-per-node --tp --dp --fsdp --zero ",
     "shard parameters over devices with --shard fsdp:8"},
    {" --dtype --precision --fp16 --bf16 --half --amp --mixed-precision ",
     "set the type of stored activations with --activation-type bf16"},
    {" --shape --shapes --input-shapes --inputs --minshapes --optshapes --maxshapes ",
     "set the shape of an input with --input-shape NAME=N,N,..."},
    {" --model --onnx --input --input-model --file -i -m ",
     "name the model without a flag: ckplan plan MODEL"},
    {" --out --outfile --output-file --output-path --save --export --dest ",
     "name the file to write with -o plan.json"},
    {" --json --csv --md --markdown --yaml ", "set the format with --format json, md or csv"},
    {" --solver --algorithm --method --strategy --planner --policy ",
     "name the algorithm with --algo; `ckplan algos` lists them"},
    {" --checkpoint --checkpointing --gradient-checkpointing --activation-checkpointing --remat ",
     "ckplan decides what to recompute; give a limit with --budget 60%"},
    {" --timeout --max-time --time ", "limit the search with --time-limit 60s"},
    {" --seed ", "plans don't depend on random numbers; leave it out"},
    {" --threads --jobs --workers --num-threads -j ", "planning runs on one thread; leave it out"},
    {" --debug --log-level --loglevel --verbosity ", "show details with -v"},
    {" --silent --no-output -s ", "print only errors with -q"},
    {" --version --ver -v ", "`ckplan --version` prints the version"},
    {" --usage -? ", "--help shows all options"},
};

constexpr OtherToolNames kCommands[] = {
    {" version ", "`ckplan --version` prints the version"},
    {" usage ", "`ckplan --help` lists the commands"},
    {" optimize optimise solve schedule make create generate run ",
     "`ckplan plan MODEL` plans a model"},
    {" info show view summary stats print describe dump ",
     "`ckplan inspect MODEL` shows a model's operators, sizes and memory"},
    {" convert export annotate write save ",
     "`ckplan apply PLAN MODEL -o planned.onnx` writes a plan into its model"},
    {" verify test lint ", "`ckplan check PLAN MODEL` verifies a plan"},
    {" visualize visualise plot draw dot render ",
     "`ckplan report PLAN -o report.html` draws a plan, `ckplan graph MODEL --emit dot=graph.dot` "
     "a "
     "model"},
    {" algorithms solvers list ls ", "`ckplan algos` lists the algorithms"},
    {" gpus hardware presets ", "`ckplan devices` lists the devices"},
    {" max-batch batch capacity ", "`ckplan fit MODEL --memory 24GiB` finds the largest batch"},
    {" sweep curve frontier tradeoff ", "`ckplan pareto MODEL` draws memory against time"},
    {" validate profile exec execute train ops ", "ckplan doesn't run models; see `ckexec --help`"},
    {" bench benchmark ", "see `ckbench --help`"},
};

std::string_view AdviceOn(std::span<const OtherToolNames> table, std::string_view typed) {
  std::string word = " ";
  for (const char c : typed) {
    word += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  word += ' ';
  for (const OtherToolNames& row : table) {
    if (row.words.find(word) != std::string_view::npos) return row.advice;
  }
  return "";
}

}  // namespace

std::string_view AdviceOnFlag(std::string_view flag) { return AdviceOn(kFlags, flag); }

std::string_view AdviceOnCommand(std::string_view word) { return AdviceOn(kCommands, word); }

}  // namespace ckplan
