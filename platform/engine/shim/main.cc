// muster-shim FOLDER: holds the task whose plan lies in FOLDER.
// muster-shim --inner: the half of it inside the sandbox.
// muster-shim --exec: runs one more program in a task that runs.
// muster-shim --network: makes the network of a gang.
// muster-shim --sample ...: measures what a task uses.
// muster-shim --rank PROGRAM...: what mpirun starts a rank through.
// muster-shim --container FOLDER: holds the same task as process 1 of a container.
// muster-shim --follow FOLDER LOG_OFFSET METRICS_OFFSET: tells what becomes of it.
// muster-shim --change FOLDER: changes files of a task that runs.
// muster-shim --run FOLDER, --attach FOLDER: what --exec and the socket "attach" are for, over the
//   standard input and output.
//
// All but --rank are started by Muster itself; those above it on the descriptors of shim/plan.h.
// The program is linked to no library: it runs in images of which nothing is known.
#include <cstdio>
#include <string_view>

#include "engine/shim/modes.h"
#include "engine/shim/sampler.h"

using namespace muster::engine;  // NOLINT(google-build-using-namespace): this is its program

namespace {

int sample(char** arguments, int count) {
  const auto plan = read_sampler_plan({arguments, arguments + count});
  return plan ? run_sampler(*plan) : 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (argc > 2 && mode == "--rank") return run_rank(argv + 2);
  if (argc > 2 && mode == "--sample") return sample(argv + 2, argc - 2);
  if (argc > 2 && mode == "--follow") return run_follow(argv + 2, argc - 2);
  if (argc == 3 && mode == "--container") return run_container(argv[2]);
  if (argc == 3 && mode == "--run") return run_beside(argv[2]);
  if (argc == 3 && mode == "--attach") return run_attach(argv[2]);
  if (argc == 3 && mode == "--change") return run_change(argv[2]);
  if (argc == 2 && mode == "--inner") return run_inner();
  if (argc == 2 && mode == "--exec") return run_exec();
  if (argc == 2 && mode == "--network") return run_network();
  if (argc == 2 && !mode.starts_with("--")) return run_outer(argv[1]);
  std::fputs("muster-shim is started by muster; see muster --help\n", stderr);
  return 2;
}
