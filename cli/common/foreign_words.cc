#include "cli/common/foreign_words.h"

#include <algorithm>
#include <cctype>
#include <span>

namespace ckplan {
namespace {

struct ForeignWords {
  std::string_view words;  // Each between blanks.
  std::string_view advice;
};

constexpr ForeignWords kFlags[] = {
    {" --batch-size --batchsize --bs --bsz --train-batch-size --per-device-train-batch-size ",
     "the batch is set by --batch 64"},
    {" --seq-len --seq-length --seqlen --sequence-length --max-length --max-seq-len --image-size "
     "--img-size --imgsz --height --width ",
     "sizes are set by -D NAME=N; `ckplan inspect MODEL` shows the names"},
    {" --device --gpu --cuda --target --accelerator ",
     "planning needs no device; --cost flops:rtx4090 takes one's speed, `ckplan fit MODEL --memory "
     "rtx4090` its memory"},
    {" --vram --mem --max-memory --gpu-memory --memory-budget --budget-bytes --max-mem ",
     "the limit on a step's memory is set by --budget 16GiB or --budget-total 16GiB"},
    {" --gpus --num-gpus --world-size --nproc --nproc-per-node --tp --dp --fsdp --zero ",
     "constants are divided among devices by --shard fsdp:8"},
    {" --dtype --precision --fp16 --bf16 --half --amp --mixed-precision ",
     "the type of stored activations is set by --activation-type bf16"},
    {" --shape --shapes --input-shapes --inputs --minshapes --optshapes --maxshapes ",
     "the shape of an input is set by --input-shape NAME=N,N,..."},
    {" --model --onnx --input --input-model --file -i -m ",
     "the model is named without a flag: ckplan plan MODEL"},
    {" --out --outfile --output-file --output-path --save --export --dest ",
     "the file to write is named by -o plan.json"},
    {" --json --csv --md --markdown --yaml ", "the format is set by --format json, md or csv"},
    {" --solver --algorithm --method --strategy --planner --policy ",
     "the algorithm is named by --algo; `ckplan algos` lists them"},
    {" --checkpoint --checkpointing --gradient-checkpointing --activation-checkpointing --remat ",
     "what to recompute is planned for a limit: --budget 60%"},
    {" --timeout --max-time --time ", "the time to search is limited by --time-limit 60s"},
    {" --seed ", "plans do not depend on chance; leave it out"},
    {" --threads --jobs --workers --num-threads -j ", "planning runs on one thread; leave it out"},
    {" --debug --log-level --loglevel --verbosity ", "details are shown by -v"},
    {" --silent --no-output -s ", "only errors are printed with -q"},
    {" --version --ver -v ", "`ckplan --version` prints the version"},
    {" --usage -? ", "--help shows all options"},
};

constexpr ForeignWords kCommands[] = {
    {" version ", "`ckplan --version` prints the version"},
    {" usage ", "`ckplan --help` lists the commands"},
    {" optimize optimise solve schedule make create generate run ",
     "`ckplan plan MODEL` plans a model"},
    {" info show view summary stats print describe dump ",
     "`ckplan inspect MODEL` shows what a model consists of"},
    {" convert export annotate write save ",
     "`ckplan apply PLAN MODEL -o planned.onnx` writes a plan into its model"},
    {" verify test lint ", "`ckplan check PLAN MODEL` judges a plan"},
    {" visualize visualise plot draw dot render ",
     "`ckplan report PLAN -o report.html` draws a plan, `ckplan graph MODEL --emit dot=graph.dot` "
     "a "
     "model"},
    {" algorithms solvers list ls ", "`ckplan algos` lists the algorithms"},
    {" gpus hardware presets ", "`ckplan devices` lists the devices"},
    {" max-batch batch capacity ", "`ckplan fit MODEL --memory 24GiB` finds the largest batch"},
    {" sweep curve frontier tradeoff ", "`ckplan pareto MODEL` draws memory against time"},
    {" validate profile exec execute train ops ",
     "ckplan runs no model; `ckexec --help` lists what its sibling does"},
    {" bench benchmark ", "`ckbench --help` lists what its sibling does"},
};

std::string_view AdviceOn(std::span<const ForeignWords> table, std::string_view typed) {
  std::string word = " ";
  for (const char c : typed) {
    word += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  word += ' ';
  for (const ForeignWords& row : table) {
    if (row.words.find(word) != std::string_view::npos) return row.advice;
  }
  return "";
}

}  // namespace

std::string_view AdviceOnFlag(std::string_view flag) { return AdviceOn(kFlags, flag); }

std::string_view AdviceOnCommand(std::string_view word) { return AdviceOn(kCommands, word); }

}  // namespace ckplan
