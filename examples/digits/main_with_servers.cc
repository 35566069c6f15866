// digits-with-servers: digits with the parameter servers of gRPC. `digits --strategy parameter-server` runs
// it; the arguments, the output and the exit codes are those of digits.
#include "options.h"
#include "run.h"

int main(int argc, char** argv) {
  using namespace muster::digits;
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  return run_program(arguments, run_ring, run_with_servers);
}
