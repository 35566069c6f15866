// digits: trains a small network on handwritten digits over all processes of a job.
//
// Exit codes: 0 trained; 1 something failed, a sentence on standard error says what; 2 bad usage.
#include <cstdio>

#include "options.h"
#include "run.h"

namespace muster::digits {
namespace {

int run(std::span<const std::string_view> arguments) {
  const Options defaults{.data = DIGITS_DATA};
  const auto options = parse(arguments, defaults);
  if (!options) {
    for (const std::string& fault : options.error()) complain(fault);
    return complain("see digits --help", 2);
  }
  if (options->help) {
    std::fputs(help(defaults).c_str(), stdout);
    return 0;
  }
  switch (options->strategy) {
    case Strategy::kRing:
      return run_ring(*options);
    case Strategy::kParameterServer:
      return run_with_servers(*options);
  }
  return 2;
}

}  // namespace
}  // namespace muster::digits

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  return muster::digits::run(arguments);
}
