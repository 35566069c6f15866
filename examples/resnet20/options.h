// The command line of the program: flags of tf_cnn_benchmarks, and additional ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/collective/result.h"

namespace muster::resnet20 {

enum class Optimizer { kSgd, kMomentum, kAdam };
enum class Compress { kNone, kFloat16, kBFloat16 };
enum class Output { kText, kJson };

struct Options {
  std::string data = {};  // the folder with CIFAR-10; empty: synthetic images
  int batch_size = 64;    // of each rank
  std::uint64_t num_batches = 100;
  std::uint64_t num_warmup_batches = 10;
  std::uint64_t display_every = 10;
  std::optional<double> learning_rate = {};  // nullopt: the optimizer's default
  Optimizer optimizer = Optimizer::kMomentum;
  Compress compress = Compress::kNone;
  bool sync_batch_norm = false;
  std::string checkpoint = {};  // the folder; empty: no checkpoints
  std::uint64_t checkpoint_every = 100;
  bool resume = false;
  int threads = 1;
  std::uint64_t seed = 1;
  Output output = Output::kText;
  bool help = false;
};

/// For output: "momentum".
std::string_view to_string(Optimizer optimizer);

/// Reads `--name value`, `--name=value` and the flags without a value.
///
/// Errors: all faults of the line, one sentence each.
collective::Result<Options, std::vector<std::string>> parse(
    std::span<const std::string_view> arguments);

/// The output of --help.
std::string help();

}  // namespace muster::resnet20
