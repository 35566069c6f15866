#include "bootstrap/choices.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace muster::collective {
namespace {

constexpr std::string_view kTransports[] = {"auto", "shm", "tcp", "mpi", "nccl"};
constexpr std::string_view kAlgorithms[] = {"auto", "direct", "ring", "rabenseifner", "doubling"};
constexpr int kMostStreams = 16;

Status check_name(const std::string& what, const std::string& variable, const std::string& value,
                  std::span<const std::string_view> known) {
  if (value.empty() || std::ranges::find(known, value) != known.end()) return {};
  std::string names;
  for (const std::string_view name : known)
    names += (names.empty() ? "" : ", ") + std::string(name);
  return Error{ErrorCode::kConfiguration, "there is no " + what + " '" + value + "', only " + names,
               "set " + variable + " to one of them, or leave it out"};
}

}  // namespace

Status check_choices(const Options& options) {
  Status checked =
      check_name("transport", "MUSTER_COLLECTIVE_TRANSPORT", options.transport, kTransports);
  if (!checked) return checked;
  checked = check_name("algorithm", "MUSTER_COLLECTIVE_ALGORITHM", options.algorithm, kAlgorithms);
  if (!checked) return checked;
  if (options.streams && (*options.streams < 1 || *options.streams > kMostStreams)) {
    return Error{ErrorCode::kConfiguration,
                 std::to_string(*options.streams) + " streams are not between 1 and " +
                     std::to_string(kMostStreams),
                 "set MUSTER_COLLECTIVE_STREAMS to a number of that range, or leave it out"};
  }
  return {};
}

}  // namespace muster::collective
