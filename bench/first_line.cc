// The smallest MPI program: rank 0 prints a line when MPI is initialized. The launch benchmark
// waits for that line.
#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    std::puts("first line");
    std::fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
