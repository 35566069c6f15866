#include "launch/rank_prefix.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "launch/command_words.h"

namespace muster::launch {

namespace {

constexpr std::array<std::string_view, 6> kHydraLaunchers{
    "mpiexec", "mpirun", "mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich", "mpirun.hydra"};

// Hydra's options that take a value, with how many. Any other word without a dash is the program.
struct Option {
  std::string_view name;
  int values = 1;
};
constexpr std::array<Option, 26> kOptions{
    {{"n"},           {"np"},         {"ppn"},        {"perhost"},  {"f"},        {"hostfile"},
     {"machinefile"}, {"machine"},    {"host"},       {"hosts"},    {"launcher"}, {"bootstrap"},
     {"iface"},       {"wdir"},       {"configfile"}, {"bind-to"},  {"map-by"},   {"membind"},
     {"env", 2},      {"genv", 2},    {"envlist"},    {"genvlist"}, {"rmk"},      {"launcher-exec"},
     {"path"},        {"order-nodes"}}};

bool is_launcher(std::string_view word) {
  return std::any_of(kHydraLaunchers.begin(), kHydraLaunchers.end(),
                     [&](std::string_view name) { return is_file_named(word, name); });
}

int values_of(std::string_view option) {
  const auto known = std::find_if(kOptions.begin(), kOptions.end(),
                                  [&](const Option& other) { return other.name == option; });
  return known == kOptions.end() ? 0 : known->values;
}

/// Of a launcher whose options begin at `at`.
bool prepends_rank_from(const std::vector<std::string_view>& words, size_t at) {
  for (; at < words.size() && words[at].starts_with('-'); ++at) {
    std::string_view option = words[at];
    option.remove_prefix(std::min(option.find_first_not_of('-'), option.size()));
    if (option == "l" || option == "prepend-rank") return true;
    at += static_cast<size_t>(values_of(option));
  }
  return false;
}

}  // namespace

bool prepends_rank(const std::vector<std::string>& command) {
  const std::vector<std::string_view> words = words_of(command);
  for (size_t i = 0; i < words.size(); ++i) {
    if (is_launcher(words[i]) && prepends_rank_from(words, i + 1)) return true;
  }
  return false;
}

}  // namespace muster::launch
