// The command line of the program.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/collective/result.h"
#include "muster/parameter_server/optimizer.h"
#include "training.h"

namespace muster::digits {

/// How the gradients of all processes are combined.
enum class Strategy { kRing, kParameterServer };

/// The settings of Strategy::kParameterServer.
struct ServerSettings {
  std::optional<std::uint64_t> staleness = {};  // steps a worker may be ahead; nullopt: any
  std::optional<int> start_with = {};           // workers that must join first; nullopt: all
  std::chrono::seconds silence{10};             // time without an answer that counts as a loss
  parameter_server::Optimizer optimizer = {};   // with the learning rate of Settings
};

struct Options {
  std::string data;  // the folder with the four files
  Strategy strategy = Strategy::kRing;
  Settings settings;
  ServerSettings servers;
  std::string save;  // the file for rank 0's weights; empty: none
  Output output = Output::kText;
  bool help = false;
};

/// Reads `--name value` and `--name=value`, over the defaults in `defaults`.
///
/// Errors: all faults of the line, one sentence each.
collective::Result<Options, std::vector<std::string>> parse(
    std::span<const std::string_view> arguments, Options defaults);

/// The output of --help.
std::string help(const Options& defaults);

}  // namespace muster::digits
