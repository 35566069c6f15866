#include "launch/mpirun_command.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace muster::launch {

namespace {

constexpr std::array<std::string_view, 6> kLaunchers{
    "mpirun", "mpiexec", "orterun", "mpirun.openmpi", "mpiexec.openmpi", "orterun.openmpi"};

// With one dash or two, as Open MPI takes them.
constexpr std::array<std::string_view, 9> kOutputOptions{"output-filename",
                                                         "output",
                                                         "tag-output",
                                                         "timestamp-output",
                                                         "xml",
                                                         "xterm",
                                                         "xml-file",
                                                         "merge-stderr-to-stdout",
                                                         "output-directory"};

bool is_output_option(std::string_view word) {
  if (!word.starts_with('-')) return false;
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  return std::find(kOutputOptions.begin(), kOutputOptions.end(), word) != kOutputOptions.end();
}

}  // namespace

bool is_plain_mpirun(const std::vector<std::string>& argv) {
  if (argv.empty()) return false;
  const std::string_view program = argv.front();
  const std::string_view name = program.substr(program.rfind('/') + 1);
  return std::find(kLaunchers.begin(), kLaunchers.end(), name) != kLaunchers.end() &&
         std::none_of(argv.begin(), argv.end(), is_output_option);
}

}  // namespace muster::launch
