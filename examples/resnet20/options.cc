#include "options.h"

#include <flags.h>

#include <utility>

namespace muster::resnet20 {
namespace {

using examples::Flag;
using examples::number;
using examples::Reader;
using examples::Switch;
using examples::text;
using examples::word;

Reader only(std::string_view allowed) {
  return [allowed](std::string_view text) { return text == allowed; };
}

constexpr std::pair<std::string_view, Optimizer> kOptimizers[] = {
    {"sgd", Optimizer::kSgd}, {"momentum", Optimizer::kMomentum}, {"adam", Optimizer::kAdam}};

constexpr std::pair<std::string_view, Compress> kCompress[] = {
    {"none", Compress::kNone}, {"float16", Compress::kFloat16}, {"bfloat16", Compress::kBFloat16}};

constexpr std::pair<std::string_view, Output> kOutputs[] = {{"text", Output::kText},
                                                            {"json", Output::kJson}};

constexpr std::uint64_t kMost = 1'000'000'000'000;

std::vector<Flag> flags_of(Options& options) {
  return {
      {"--model", "resnet20, the only model", only("resnet20")},
      {"--data", "a folder", text(options.data)},
      {"--data_dir", "a folder", text(options.data)},
      {"--data_name", "cifar10, the only data set", only("cifar10")},
      {"--variable_update", "horovod, the only method", only("horovod")},
      {"--batch_size", "a whole number from 1 to 100000", number(options.batch_size, 1, 100'000)},
      {"--num_batches", "a whole number from 1",
       number(options.num_batches, std::uint64_t{1}, kMost)},
      {"--num_warmup_batches", "a whole number from 0",
       number(options.num_warmup_batches, std::uint64_t{0}, kMost)},
      {"--display_every", "a whole number from 1",
       number(options.display_every, std::uint64_t{1}, kMost)},
      {"--learning_rate", "a number above 0, up to 100",
       number(options.learning_rate, 1e-12, 100.0)},
      {"--optimizer", "sgd, momentum or adam", word(options.optimizer, kOptimizers)},
      {"--compress", "none, float16 or bfloat16", word(options.compress, kCompress)},
      {"--checkpoint", "a folder", text(options.checkpoint)},
      {"--checkpoint_every", "a whole number from 1",
       number(options.checkpoint_every, std::uint64_t{1}, kMost)},
      {"--threads", "a whole number from 1 to 1024", number(options.threads, 1, 1024)},
      {"--seed", "a whole number from 0",
       number(options.seed, std::uint64_t{0}, ~std::uint64_t{0})},
      {"--output", "text or json", word(options.output, kOutputs)},
  };
}

}  // namespace

std::string_view to_string(Optimizer optimizer) {
  for (const auto& [name, value] : kOptimizers) {
    if (value == optimizer) return name;
  }
  return "";
}

collective::Result<Options, std::vector<std::string>> parse(
    std::span<const std::string_view> arguments) {
  Options options;
  const std::vector<Flag> flags = flags_of(options);
  const std::vector<Switch> switches = {{"--help", options.help},
                                        {"-h", options.help},
                                        {"--resume", options.resume},
                                        {"--sync_batch_norm", options.sync_batch_norm}};
  std::vector<std::string> faults;
  read_flags(arguments, flags, switches, faults);
  if (options.resume && options.checkpoint.empty()) {
    faults.emplace_back("--resume requires --checkpoint with the folder of the checkpoint");
  }
  if (!faults.empty()) return faults;
  return options;
}

std::string help() {
  return "Trains ResNet-20, data-parallel over the processes of a job, and prints images/sec.\n"
         "\n"
         "  resnet20 --num_batches=100             on one process, with synthetic images\n"
         "  mpirun -np 2 resnet20 --data DIR       on two processes of this host, with CIFAR-10\n"
         "  muster submit mpi dist --processes 2 -- resnet20 --model=resnet20 --num_batches=1000\n"
         "\n"
         "  --data DIR              folder with the binary version of CIFAR-10 (data_batch_1.bin\n"
         "                          and so on, test_batch.bin); default: synthetic images\n"
         "  --batch_size N          images per step on each process (64)\n"
         "  --num_batches N         measured steps on each process (100)\n"
         "  --num_warmup_batches N  steps before the measured steps (10)\n"
         "  --display_every N       steps between two lines (10)\n"
         "  --optimizer NAME        sgd, momentum (0.9, the default), adam\n"
         "  --learning_rate X       learning rate (0.05; with adam 0.001)\n"
         "  --compress TYPE         send gradients as float16 or bfloat16 (none)\n"
         "  --sync_batch_norm       normalise over the batches of all processes\n"
         "  --checkpoint DIR        write checkpoints to DIR, also at the end\n"
         "  --checkpoint_every N    steps between two checkpoints (100)\n"
         "  --resume                continue from the checkpoint, if there is one, up to a\n"
         "                          total of num_batches steps\n"
         "  --threads N             threads of each process (1)\n"
         "  --seed N                seed of initial weights, synthetic images and their order (1)\n"
         "  --output FORM           text, or json: an object for each line and one at the end\n"
         "\n"
         "The flags of tf_cnn_benchmarks --model=resnet20, --data_dir, --data_name=cifar10 and\n"
         "--variable_update=horovod are accepted as well.\n";
}

}  // namespace muster::resnet20
