// The command line of the program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/collective/result.h"
#include "trainer.h"

namespace muster::digits {

struct Options {
  std::string data;  // the folder with the four files
  Settings settings;
  std::string save;  // where rank 0 writes the weights; empty: nowhere
  bool help = false;
};

/// Reads `--name value` and `--name=value`, over the defaults in `defaults`.
///
/// Errors: all faults of the line, one sentence each.
collective::Result<Options, std::vector<std::string>> parse(
    std::span<const std::string_view> arguments, Options defaults);

/// What --help prints.
std::string help(const Options& defaults);

}  // namespace muster::digits
