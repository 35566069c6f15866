// MPI_Allreduce. Compiled once with each MPI's own compiler.
#include <mpi.h>

#include "core.h"

int main(int argc, char** argv) {
  const bench::Plan plan = bench::plan_from(bench::Arguments(argc, argv));
  // Comes before MPI starts threads, which stay on the core on which they were started.
  bench::Page page(plan.page, plan.rank, plan.ranks, plan.cores);
  if (plan.type != bench::Type::kFloat32) bench::fail("MPI has no 16-bit floats");
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != plan.rank) bench::fail("MPI has other numbers for the ranks");
  // MPI makes progress only while it is called: over TCP the end of a message may still be queued
  // when the call that sent it has returned, and the other rank would wait for ever.
  page.while_waiting([] {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  });

  bench::Subject subject;
  subject.prepare = [](const void* in, void* out, std::uint64_t bytes) {
    const void* from = in == out ? MPI_IN_PLACE : in;
    const int count = static_cast<int>(bytes / sizeof(float));
    return [=] { MPI_Allreduce(from, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
  };
  bench::measure(plan, page, subject);
  MPI_Finalize();
  return 0;
}
