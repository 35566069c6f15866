// digits: trains a small network on handwritten digits over all processes of a job.
//
// `--strategy parameter-server` runs the program digits-with-servers in the same folder: the
// servers need gRPC, which takes half as long to compile as everything else that a first job needs.
//
// Exit codes: 0 training succeeded; 1 it failed, with the reason on standard error; 2 bad usage.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "options.h"
#include "run.h"

namespace muster::digits {
namespace {

// Returns only if the other program cannot be started.
int become_digits_with_servers(char** argv) {
  std::error_code unreadable;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  const std::string program = self.parent_path() / "digits-with-servers";
  ::execv(program.c_str(), argv);
  return complain("cannot run " + program + ": " + std::strerror(errno) +
                  "; `make build` compiles it");
}

}  // namespace
}  // namespace muster::digits

int main(int argc, char** argv) {
  using namespace muster::digits;
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  return run_program(arguments, run_ring,
                     [&](const Options&) { return become_digits_with_servers(argv); });
}
