/* An MPI program for tests: each rank prints its number, its host and the MPI library. Before that,
 * an all-reduce whose result every rank verifies shows that all ranks take part.
 *
 *   mpi_where [FILE]   waits before the end until FILE, for example a named pipe, has a byte to read */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** words) {
  int rank = 0;
  int size = 0;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  /* Too large for an eager message, so the data uses the same protocol as large buffers. */
  static double sent[1 << 15];
  static double sums[1 << 15];
  for (int i = 0; i < 1 << 15; ++i) sent[i] = rank + 1 + i;
  MPI_Allreduce(sent, sums, 1 << 15, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 1 << 15; ++i) {
    if (sums[i] != size * (size + 1) / 2 + (double)size * i) {
      fprintf(stderr, "rank %d: element %d is %f\n", rank, i, sums[i]);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }

  char host[MPI_MAX_PROCESSOR_NAME];
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_processor_name(host, &length);
  MPI_Get_library_version(library, &length);
  library[strcspn(library, ",\n")] = '\0';
  for (char* at = library; *at != '\0'; ++at) {
    if (*at == '\t') *at = ' ';
  }
  printf("rank %d of %d on %s by %s\n", rank, size, host, library);
  fflush(stdout);

  /* Rank 0 waits for the file, and the barrier makes the other ranks wait for rank 0. */
  if (count > 1) {
    if (rank == 0) {
      FILE* gate = fopen(words[1], "r");
      if (gate == NULL || fgetc(gate) == EOF) MPI_Abort(MPI_COMM_WORLD, 4);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d goes on\n", rank);
  }
  MPI_Finalize();
  return 0;
}
