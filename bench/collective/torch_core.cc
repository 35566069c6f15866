// The common loop as a shared library, for peer_torch.py. Preparation and calls come from Python;
// the loop, the clock and the verification are the same as for all other subjects. Entering Python
// takes one or two microseconds per call.
#include <memory>

#include "core.h"

extern "C" {

using BenchPrepare = void (*)(const void* in, void* out, std::uint64_t bytes);
using BenchCall = void (*)();

struct BenchSession {
  bench::Plan plan;
  bench::Page page;
};

/// Never destroyed, since the process ends with it.
BenchSession* bench_open(int argc, char** argv) {
  const bench::Plan plan = bench::plan_from(bench::Arguments(argc, argv));
  return new BenchSession{plan, bench::Page(plan.page, plan.rank, plan.ranks, plan.cores)};
}

void bench_measure(BenchSession* session, BenchPrepare prepare, BenchCall call) {
  bench::Subject subject;
  subject.prepare = [=](const void* in, void* out, std::uint64_t bytes) {
    prepare(in, out, bytes);
    return call;
  };
  bench::measure(session->plan, session->page, subject);
}
}
