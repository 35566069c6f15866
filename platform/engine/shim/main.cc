// muster-shim FOLDER: holds the task whose plan lies in FOLDER.
// muster-shim --inner: the half of it inside the sandbox.
// muster-shim --exec: runs one more program in a task that runs.
// muster-shim --sample ...: measures what a task uses.
// muster-shim --rank PROGRAM...: what mpirun starts a rank through.
//
// All but the last are started by Muster itself, on the descriptors named in shim/plan.h.
#include <cstdio>
#include <cstring>

#include "engine/shim/exec.h"
#include "engine/shim/inner.h"
#include "engine/shim/outer.h"
#include "engine/shim/rank_output.h"
#include "engine/shim/sampler.h"

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "--rank") == 0) return muster::engine::run_rank(argv + 2);
  if (argc > 2 && std::strcmp(argv[1], "--sample") == 0) {
    const auto plan = muster::engine::read_sampler_plan({argv + 2, argv + argc});
    return plan ? muster::engine::run_sampler(*plan) : 2;
  }
  if (argc != 2) {
    std::fputs("muster-shim is started by muster; see muster --help\n", stderr);
    return 2;
  }
  if (std::strcmp(argv[1], "--inner") == 0) return muster::engine::run_inner();
  if (std::strcmp(argv[1], "--exec") == 0) return muster::engine::run_exec();
  return muster::engine::run_outer(argv[1]);
}
