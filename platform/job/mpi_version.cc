#include "job/mpi_version.h"

#include <array>
#include <charconv>

namespace muster::job {

namespace {

/// The text before the version in each MPI's output.
struct Words {
  MpiKind kind;
  std::string_view name;
  std::string_view before;  ///< the number follows
};

// Intel MPI is derived from MPICH and prints its text, too, so Intel's own text is searched first.
constexpr std::array<Words, 4> kKnown{
    {{MpiKind::kIntel, "Intel MPI", "Intel(R) MPI Library for Linux* OS, Version "},
     {MpiKind::kOpenMpi, "Open MPI", "mpirun (Open MPI) "},
     {MpiKind::kOpenMpi, "Open MPI", "mpiexec (OpenRTE) "},
     {MpiKind::kMpich, "MPICH", "Version:"}}};

std::string_view name_of(MpiKind kind) {
  for (const Words& words : kKnown) {
    if (words.kind == kind) return words.name;
  }
  return {};
}

}  // namespace

std::string to_string(const MpiVersion& version) {
  return std::string(name_of(version.kind)) + " " + version.version;
}

std::optional<MpiVersion> read_mpi_version(std::string_view output) {
  for (const Words& words : kKnown) {
    size_t at = output.find(words.before);
    if (at == std::string_view::npos) continue;
    at = output.find_first_not_of(' ', at + words.before.size());
    if (at == std::string_view::npos) continue;
    const std::string_view number = output.substr(at, output.find_first_of(" \r\n", at) - at);
    MpiVersion found{.kind = words.kind, .version = std::string(number)};
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), found.major);
    if (error == std::errc{}) return found;
  }
  return std::nullopt;
}

}  // namespace muster::job
